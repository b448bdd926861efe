"""Attacks through model files: damaged ones, and forged ones whose seal fits."""

import json
import pickle
import random
import shutil
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.attacks.harness import Case, Place
from tests.attacks.material import (
    MODEL_KEY,
    MODELS,
    ODD_VALUES,
    nodes,
    not_probabilities,
    predict_with,
    read_model,
    replaced,
    write_forged,
)

# ---- damage --------------------------------------------------------------------------------------


def whole(content: bytes, chance: random.Random) -> bytes:
    return content


def flip(content: bytes, chance: random.Random) -> bytes:
    found = bytearray(content)
    found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def flip_in_header(content: bytes, chance: random.Random) -> bytes:
    found = bytearray(content)
    found[chance.randrange(min(len(found), 4096))] ^= 1 << chance.randrange(8)
    return bytes(found)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def swap(content: bytes, chance: random.Random) -> bytes:
    if len(content) < 256:
        return content[::-1]
    size = chance.randrange(1, 65)
    first, second = sorted(chance.sample(range(0, len(content) - size, size), 2))
    found = bytearray(content)
    found[first : first + size], found[second : second + size] = (
        content[second : second + size], content[first : first + size],
    )  # fmt: skip
    return bytes(found)


def grow(content: bytes, chance: random.Random) -> bytes:
    return content + chance.randbytes(chance.choice([1, 7, 8, 4096]))


def grow_inside(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + chance.randbytes(chance.choice([1, 4, 8])) + content[place:]


def blank(content: bytes, chance: random.Random) -> bytes:
    place, size = chance.randrange(len(content)), chance.choice([1, 4, 64, 1024])
    return content[:place] + b"\0" * len(content[place : place + size]) + content[place + size :]


def scramble(content: bytes, chance: random.Random) -> bytes:
    place, size = chance.randrange(len(content)), chance.choice([2, 16, 256])
    lost = len(content[place : place + size])
    return content[:place] + chance.randbytes(lost) + content[place + size :]


def lie_about_header(content: bytes, chance: random.Random) -> bytes:
    length = chance.choice([0, 1, 2**20, 2**31, 2**63, 2**64 - 1, len(content), len(content) - 8])
    return struct.pack("<Q", length) + content[8:]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip, flip_in_header, cut, swap, grow, grow_inside, blank, scramble, lie_about_header,
)  # fmt: skip


def damaged_models(material: Path) -> list[Case]:
    """Every damage to every model, and through the command line each twentieth."""
    cases = []
    for name in MODELS:
        content = (material / f"{name}.echelon").read_bytes()
        cases.append(_damaged(material, name, content, whole, 0))
        for damage in DAMAGES:
            for number in range(18):
                cases.append(_damaged(material, name, content, damage, number))
    return cases


def _damaged(material: Path, name: str, content: bytes, damage: Any, number: int) -> Case:
    chance = random.Random(f"{name} {damage.__name__} {number}")

    def prepare(place: Place) -> None:
        (place.given / "m.echelon").write_bytes(damage(content, chance))

    def same(place: Place, found: Any) -> str | None:
        expected = np.load(material / f"{name}.npy")
        if np.array_equal(found, expected):
            return None
        return f"other predictions than the whole model, by up to {abs(found - expected).max()}"

    title = f"damaged {name} {damage.__name__} {number}"
    if number % 18 == 17:
        return Case(title, prepare, command=lambda place: _predict(place, material, name))
    is_whole = damage is whole
    return Case(
        title, prepare, call=lambda place: _predicted(place, material, name), check=same,
        always=is_whole, whole=is_whole,
    )  # fmt: skip


def _predicted(place: Place, material: Path, name: str) -> Any:
    return predict_with(place.given / "m.echelon", material / f"{name}.csv")


def _predict(place: Place, material: Path, name: str) -> list[str]:
    return [
        "predict", str(place.given / "m.echelon"), str(material / f"{name}.csv"),
        "--out", str(place.out / "p.csv"), "--json",
    ]  # fmt: skip


# ---- forging -------------------------------------------------------------------------------------


def forged_models(material: Path) -> list[Case]:
    """Documents with odd values, tensors with odd numbers, and files that try to reach further."""
    cases: list[Case] = []
    for name in MODELS:
        tensors, document = read_model(material / f"{name}.echelon")
        cases += _hostile(material, name)
        cases.append(_forged(f"forged {name} not at all", material, name, _unchanged, whole=True))
        cases += _odd_tensors(material, name, tensors)
        cases += _odd_texts(material, name, document)
        pairs = [(keys, odd) for keys in nodes(document) for odd in ODD_VALUES]
        # Settings and readers decide what is built, the rest only what is shown.
        weighted = [pair for pair in pairs if pair[0][0] in ("schema", "model", "kind", "classes")]
        chance = random.Random(f"forged {name}")
        chosen = chance.sample(weighted, min(130, len(weighted)))
        chosen += chance.sample(pairs, 75)
        for keys, odd in dict.fromkeys(chosen):
            title = f"forged {name} {'.'.join(map(str, keys))} = {odd}"
            cases.append(_forged(title, material, name, _with_value(keys, ODD_VALUES[odd])))
        cases += [
            _forged(f"forged {name} document = {odd}", material, name, _instead(value))
            for odd, value in ODD_VALUES.items()
            if odd in ("null", "true", "list", "object", "word", "deep", "minus-one")
        ]
    return cases


def _unchanged(tensors: Any, document: Any, place: Place) -> None:
    """Sealed anew, so that a refusal of all others is not the seal's."""


def _with_value(keys: tuple[Any, ...], value: Any) -> Any:
    return lambda tensors, document, place: replaced(document, keys, value)


def _instead(value: Any) -> Any:
    return lambda tensors, document, place: value


def _forged(
    title: str, material: Path, name: str, change: Any, *, always: bool = False,
    by_command: bool = False, whole: bool = False,
) -> Case:  # fmt: skip
    def prepare(place: Place) -> None:
        tensors, document = read_model(material / f"{name}.echelon")
        changed = change(tensors, document, place)
        document = document if changed is None else changed
        write_forged(place.given / "m.echelon", tensors, document, MODEL_KEY)

    if by_command:
        return Case(
            title, prepare, command=lambda place: _predict(place, material, name), always=always
        )
    return Case(
        title,
        prepare,
        call=lambda place: _predicted(place, material, name),
        check=lambda place, found: not_probabilities(found),
        always=always or whole,
        whole=whole,
    )


def _odd_tensors(material: Path, name: str, tensors: dict[str, Any]) -> Iterable[Case]:
    import torch

    def nan(value: Any) -> Any:
        return torch.full_like(value.float(), float("nan"))

    changes = {
        "missing": None,
        "one-more-row": lambda v: torch.cat([v, v]) if v.dim() else v.reshape(1, 1),
        "no-rows": lambda v: v.reshape(-1)[:0],
        "half": lambda v: v.half(),
        "bytes": lambda v: v.to(torch.uint8),
        "complex-like": lambda v: v.to(torch.bfloat16),
        "nan": nan,
        "infinite": lambda v: torch.full_like(v.float(), float("inf")),
        "large": lambda v: torch.full_like(v.float(), 3e38),
        "negative": lambda v: (-abs(v.float()) - 1).to(v.dtype),
    }
    names = sorted(tensors)
    chance = random.Random(f"tensors {name}")
    for odd, change in changes.items():
        for tensor in names if len(names) < 8 else chance.sample(names, 8):
            title, always = f"forged {name} tensor {tensor} {odd}", tensor.startswith("model.head")
            changed = _with_tensor(tensor, change)
            yield _forged(title, material, name, changed, always=always and odd == "nan")
    yield _forged(
        f"forged {name} tensor more", material, name, _with_tensor("model.head.more", lambda v: v)
    )


def _odd_texts(material: Path, name: str, document: Any) -> Iterable[Case]:
    """Damage within long texts, such as those of trees and tokenizers, under a seal that fits."""
    for keys in nodes(document):
        text = _at(document, keys)
        if not isinstance(text, str) or len(text) < 500:
            continue
        for damage in DAMAGES[:8]:
            for number in range(8):
                chance = random.Random(f"{name} {keys} {damage.__name__} {number}")
                changed = damage(text.encode(), chance).decode("utf-8", "replace")
                always = name == "boosting" and not number
                title = f"forged {name} text {'.'.join(map(str, keys))} {damage.__name__} {number}"
                yield _forged(title, material, name, _with_value(keys, changed), always=always)


def _at(document: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        document = document[key]
    return document


def _with_tensor(tensor: str, change: Any) -> Any:
    def changed(tensors: dict[str, Any], document: Any, place: Place) -> None:
        import torch

        old = tensors.pop(tensor, torch.zeros(3))
        if change is not None:
            tensors[tensor] = change(old)

    return changed


class _Runs:
    """Leaves a mark where it is opened as a pickle."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (open, (str(self.mark), "w"))


_EVIL = """
import os
open(os.environ["HOME"] + "/code-ran", "w").close()
from transformers import BertConfig as Evil, BertModel as EvilModel
"""


def leave_bait(place: Place) -> None:
    """Put files beside a model that run code if anybody opens them the wrong way."""
    import torch

    (place.given / "bait.pkl").write_bytes(pickle.dumps(_Runs(place.out / "code-ran")))
    torch.save({"a": _Runs(place.out / "code-ran")}, place.given / "bait.pth")
    folder = place.given / "bait"
    folder.mkdir()
    (folder / "evil.py").write_text(_EVIL)
    remote = {"AutoConfig": "evil.Evil", "AutoModel": "evil.EvilModel"}
    told = {"model_type": "evil", "auto_map": remote, "architecture": "test_resnet"}
    (folder / "config.json").write_text(json.dumps(told))
    shutil.copy(place.given / "bait.pkl", folder / "pytorch_model.bin")


def _hostile(material: Path, name: str) -> list[Case]:
    """Ways to make a model reach for code, for the network or for all memory."""
    found = []
    for title, change in (*HOSTILE.get(name, {}).items(), *_HOSTILE_ALL.items()):

        def change_beside_bait(
            tensors: Any, document: Any, place: Place, change: Any = change
        ) -> Any:
            leave_bait(place)
            return change(tensors, document, place)

        for by_command in (False, True):
            whole_title = f"hostile {name} {title}{' (command)' if by_command else ''}"
            case = _forged(
                whole_title, material, name, change_beside_bait, by_command=by_command,
                always=not by_command and title in _ALWAYS,
            )  # fmt: skip
            found.append(case)
    return found


def _backbone(part: str, name: str) -> Any:
    def change(tensors: Any, document: Any, place: Place) -> None:
        whole = name.replace("@", str(place.given)).replace("ADDRESS", place.address)
        document["model"]["network"]["backbones"][part] = whole
        document["parameters"]["backbone"] = whole

    return change


def _option(part: str, **options: Any) -> Any:
    def change(tensors: Any, document: Any, place: Place) -> None:
        text = json.dumps(options).replace("@", str(place.given)).replace("ADDRESS", place.address)
        told = document["model"]["network"]["backbone_options"]
        told.setdefault(part, {})
        told[part] = {**(told[part] or {}), **json.loads(text)}

    return change


def _config(**changes: Any) -> Any:
    def change(tensors: Any, document: Any, place: Place) -> None:
        text = json.dumps(changes).replace("@", str(place.given)).replace("ADDRESS", place.address)
        document["model"]["readers"]["config"] |= json.loads(text)

    return change


def _other_config(**config: Any) -> Any:
    def change(tensors: Any, document: Any, place: Place) -> None:
        text = json.dumps(config).replace("@", str(place.given)).replace("ADDRESS", place.address)
        document["model"]["readers"]["config"] = json.loads(text)

    return change


def _no_config(name: str) -> Any:
    def change(tensors: Any, document: Any, place: Place) -> None:
        _backbone("text", name)(tensors, document, place)
        document["model"]["readers"]["config"] = None

    return change


def _tokenizer(change_tokenizer: Any) -> Any:
    def change(tensors: Any, document: Any, place: Place) -> None:
        told = json.loads(document["model"]["readers"]["encodings"]["text"]["document"])
        change_tokenizer(told)
        document["model"]["readers"]["encodings"]["text"]["document"] = json.dumps(told)

    return change


def _slow_expression(told: dict[str, Any]) -> None:
    pattern = {"Regex": "(.|.)*(.|.)*(.|.)*\\x00"}
    told["pre_tokenizer"] = {
        "type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False,
    }  # fmt: skip


# One of each way to reach for code, for a network and for memory; the others are in the long form.
_ALWAYS = {
    "name of the hub", "local folder", "checkpoint", "pretrained from an address", "giant",
    "a block by name", "wide", "large images", "hub instead", "folder with code instead",
    "wide embedding", "no configuration", "no configuration, folder with code", "remote code",
    "local code of another type", "attention of a hub", "timm inside", "timm wrapped",
    "slow expression", "many columns", "import as method", "many members", "wrong ranks",
}  # fmt: skip
_HOSTILE_ALL: dict[str, Any] = {
    "many classes": lambda t, d, p: d.update(classes=list(range(2_000_000)), class_kind="i"),
    "many epochs of history": lambda t, d, p: d["model"].update(history=[{}] * 100_000),
}
HOSTILE: dict[str, dict[str, Any]] = {
    "timm": {
        "name of the hub": _backbone("image", "timm:hf-hub:someone/network"),
        "name of the hub, older": _backbone("image", "timm:hf_hub:someone/network"),
        "name of another hub": _backbone("image", "timm:modelscope:someone/network"),
        "local folder": _backbone("image", "timm:local-dir:@/bait"),
        "address as name": _backbone("image", "timm:ADDRESS/network.pth"),
        "named weights": _backbone("image", "timm:test_resnet.r160_in1k"),
        "giant": _backbone("image", "timm:eva_giant_patch14_224"),
        "giant of another kind": _backbone("image", "timm:vit_gigantic_patch14_224"),
        "path as name": _backbone("image", "timm:@/bait.pth"),
        "no name": _backbone("image", "timm:"),
        "text network for images": _backbone("image", "lstm"),
        "hub as text network": _backbone("image", "hf:someone/network"),
        "checkpoint": _option("image", checkpoint_path="@/bait.pth"),
        "checkpoint, plain pickle": _option("image", checkpoint_path="@/bait.pkl"),
        "checkpoint at an address": _option("image", checkpoint_path="ADDRESS/x.pth"),
        "pretrained": _option("image", pretrained=True),
        "pretrained from an address": _option(
            "image", pretrained=True, pretrained_cfg={"url": "ADDRESS/x.pth"}
        ),
        "pretrained from a file": _option(
            "image", pretrained=True, pretrained_cfg={"file": "@/bait.pth"}
        ),
        "pretrained by overlay": _option(
            "image",
            pretrained=True,
            pretrained_cfg_overlay={"url": "ADDRESS/x.pth", "file": "@/bait.pth"},
        ),
        "pretrained configuration by name": _option("image", pretrained_cfg="r160_in1k"),
        "weights": _option("image", weights="@/bait.pth"),
        "weights and fetch": _option("image", weights="@/bait.pth", fetch=True),
        "cache": _option("image", cache_dir="@/cache", pretrained=True),
        "many channels": _option("image", in_chans=10**6),
        "wide": _option("image", channels=[10**5, 10**5, 10**5, 10**5]),
        "long": _option("image", layers=[10**6, 1, 1, 1]),
        "stem": _option("image", stem_width=10**5),
        "many classes of timm": _option("image", num_classes=10**8),
        "features only": _option("image", features_only=True),
        "scripted": _option("image", scriptable=True, exportable=True),
        "a block by name": _option("image", block="os.system"),
        "a layer by name": _option("image", act_layer="os.system", norm_layer="builtins.exec"),
        "large images": lambda t, d, p: d["model"]["readers"]["encodings"]["image"].update(
            resize=10**5, crop=10**5
        ),
        "no images": lambda t, d, p: d["model"]["readers"]["encodings"]["image"].update(
            resize=0, crop=0
        ),
        "interpolation by name": lambda t, d, p: d["model"]["readers"]["encodings"]["image"].update(
            interpolation="__class__"
        ),
    },
    "image": {
        "timm instead": _backbone("image", "timm:hf-hub:someone/network"),
        "wide": _option("image", widths=[20_000, 20_000], blocks=2),
        "long": _option("image", widths=[16] * 100_000),
        "many blocks": _option("image", blocks=10**6),
        "large images": lambda t, d, p: d["model"]["readers"]["encodings"]["image"].update(
            resize=10**5, crop=10**5
        ),
        "large margin": lambda t, d, p: d["model"]["readers"]["encodings"]["image"].update(
            pad=10**6
        ),
    },
    "text": {
        "hub instead": _no_config("hf:someone/network"),
        "folder with code instead": _no_config("hf:@/bait"),
        "wide": _option("text", hidden=100_000, embedding=50_000),
        "wide embedding": _option("text", embedding=10**8),
        "many words": lambda t, d, p: d["model"]["readers"]["encodings"]["text"].update(
            words=[f"w{i}" for i in range(500_000)]
        ),
        "long texts": lambda t, d, p: d["model"]["readers"]["encodings"]["text"].update(
            max_tokens=10**12
        ),
    },
    "encoder": {
        "no configuration": _no_config("hf:someone/network"),
        "no configuration, folder with code": _no_config("hf:@/bait"),
        "no configuration, address": _no_config("hf:ADDRESS/network"),
        "remote code": _config(
            auto_map={"AutoModel": "someone/network--evil.EvilModel"}, trust_remote_code=True
        ),
        "local code": _config(
            auto_map={"AutoModel": "@/bait--evil.EvilModel"}, _name_or_path="@/bait"
        ),
        "local code of another type": _other_config(
            model_type="evil", auto_map={"AutoModel": "evil.EvilModel"}, _name_or_path="@/bait"
        ),
        "name": _config(_name_or_path="someone/network", name_or_path="someone/network"),
        "wide": _config(hidden_size=20_000, intermediate_size=80_000, num_attention_heads=1),
        "long": _config(num_hidden_layers=200_000),
        "many words": _config(vocab_size=10**9),
        "many positions": _config(max_position_embeddings=10**9),
        "attention of a hub": _config(attn_implementation="someone/kernel"),
        "attention of a hub, inner": _config(_attn_implementation="kernels-community/flash-attn"),
        "attention by import": _config(_attn_implementation="flash_attention_2"),
        "quantised": _config(quantization_config={"quant_method": "bitsandbytes"}),
        "type of numbers": _config(torch_dtype="os.system", dtype="system"),
        "activation by name": _config(hidden_act="os.system"),
        "timm inside": _other_config(
            model_type="timm_backbone", backbone="hf-hub:someone/network", hidden_size=16
        ),
        "timm wrapped": _other_config(
            model_type="timm_wrapper",
            architecture="test_resnet",
            hidden_size=16,
            model_args={"checkpoint_path": "@/bait.pth"},
        ),
        "detection": _other_config(
            model_type="detr",
            use_timm_backbone=True,
            backbone="resnet50",
            use_pretrained_backbone=True,
            hidden_size=16,
        ),
        "depth": _other_config(model_type="dpt", backbone="someone/network", hidden_size=16),
        "retrieval": _other_config(
            model_type="rag",
            question_encoder={"model_type": "dpr"},
            generator={"model_type": "t5"},
            hidden_size=16,
            index_path="@/bait.pkl",
        ),
        "two networks": _other_config(
            model_type="vision-encoder-decoder",
            encoder={"model_type": "vit"},
            decoder={"model_type": "gpt2"},
            hidden_size=16,
        ),
        "music": _other_config(model_type="musicgen", hidden_size=16),
        "decoder": _other_config(model_type="gpt2", n_embd=16, n_layer=1, n_head=2),
        "no type": _other_config(hidden_size=16),
        "type with a path": _other_config(model_type="../bait", hidden_size=16),
        "slow expression": _tokenizer(_slow_expression),
        "tokens of other ids": _tokenizer(
            lambda told: told["model"]["vocab"].update({"course": 10**9})
        ),
        "tokens of negative ids": _tokenizer(
            lambda told: told["model"]["vocab"].update({"course": -1})
        ),
        "another tokenizer": lambda t, d, p: d["model"]["readers"]["encodings"]["text"].update(
            document="{}"
        ),
        "a path for a tokenizer": lambda t, d, p: d["model"]["readers"]["encodings"]["text"].update(
            document=str(p.given / "bait")
        ),
    },
    "table": {
        "wide": lambda t, d, p: d["model"]["network"].update(
            backbone_options={"table": {"hidden": [60_000, 60_000]}}
        ),
        "long": lambda t, d, p: d["model"]["network"].update(
            backbone_options={"table": {"hidden": [8] * 200_000}}
        ),
        "many columns": lambda t, d, p: d["schema"].update(
            columns=[[f"c{i}", "number", []] for i in range(300_000)]
        ),
        "another kind": lambda t, d, p: d.update(kind="os.system"),
        "the kind of another model": lambda t, d, p: d.update(kind="reduction"),
        "import as method": lambda t, d, p: d["parameters"].update(method="os.system"),
        "code as metric": lambda t, d, p: d["model"]["training"].update(
            metric="__import__('os').getcwd()"
        ),
        "text network": lambda t, d, p: d["model"]["network"].update(
            backbones={"text": "hf:someone/net"}
        ),
        "image network": lambda t, d, p: d["model"]["network"].update(
            backbones={"image": "timm:hf-hub:someone/net"}
        ),
    },
    "tabm": {
        "many members": lambda t, d, p: d["model"]["network"].update(
            backbone_options={"table": {"members": 10**7, "hidden": [64]}}
        ),
        "numerals": lambda t, d, p: d["model"]["network"].update(
            backbone_options={"table": {"members": "2", "hidden": "16"}}
        ),
    },
    "calibrated": {
        "wrong ranks": lambda t, d, p: t.update({"conformal.ranks": t["conformal.ranks"] + 10**9}),
        "scores that are none": lambda t, d, p: t.update(
            {"conformal.scores": t["conformal.scores"] * float("nan")}
        ),
        "negative weights": lambda t, d, p: t.update(
            {"conformal.weight": -abs(t["conformal.weight"]) - 1} if "conformal.weight" in t else {}
        ),
    },
}
