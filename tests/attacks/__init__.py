"""Attacks: what must hold for hostile and damaged files, odd options and odd inputs."""
