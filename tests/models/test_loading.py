"""Loading a saved model: the same predictions, or a clear error for anything not whole."""

import copy
import json
import os
import pickle
import re
import resource
import socketserver
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import echelon
from echelon import OrdinalClassifier
from echelon.data import make_friedman
from tests.cases import THOROUGH
from tests.forging import encodings_of, network_of, rewrite
from tests.media import mixed_table, save_tiny_encoder

QUICK = {"settings": {"max_epochs": 2}, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    data = make_friedman(200, num_classes=3)
    table = pd.DataFrame(data.features[:, :4], columns=list("abcd"))
    table["a"] = table["a"].mask(table["b"] > 0.8)
    table["kind"] = np.where(table["c"] > 0.5, "big", "small")
    table["target"] = np.array(["lo", "mid", "hi"])[data.ranks]
    return table


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> OrdinalClassifier:
    made = OrdinalClassifier(classes=["lo", "mid", "hi"], **QUICK)
    return made.fit(frame.drop(columns="target"), frame["target"])


@pytest.fixture(scope="module")
def saved(model: OrdinalClassifier, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.echelon"
    model.save(path)
    return path


def test_round_trip(model: OrdinalClassifier, saved: Path, frame: pd.DataFrame) -> None:
    loaded = echelon.load(saved)
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.classes_.tolist() == ["lo", "mid", "hi"]
    assert loaded.history_ == model.history_
    assert loaded.get_params()["classes"] == ["lo", "mid", "hi"]


@pytest.mark.parametrize("method", echelon.METHODS)
@pytest.mark.parametrize("backbone", ["linear", "mlp"] if THOROUGH else ["mlp"])
def test_every_method(tmp_path: Path, method: str, backbone: str) -> None:
    data = make_friedman(100, num_classes=4)
    model = OrdinalClassifier(method, backbone, **QUICK).fit(data.features, data.ranks)
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(
        loaded.predict_proba(data.features), model.predict_proba(data.features)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"backbone": "tabm", "backbone_options": {"members": 4, "hidden": (16, 16)}},
        {"recipe": "paper"},
        {"method": "clm", "method_options": {"link": "probit"}},
        {"decision": np.ones((4, 4)) - np.eye(4)},
        {"settings": {"max_epochs": 2, "scaling": "standard"}},
    ],
)
def test_options(tmp_path: Path, options) -> None:
    data = make_friedman(100, num_classes=4)
    model = OrdinalClassifier(**{**QUICK, **options}).fit(data.features, data.ranks)
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(data.features), model.predict(data.features))


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_is_noticed(saved: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Cut, changed or grown anywhere: a ValueError, or the same model."""
    content = bytearray(saved.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["cut", "flip", "grow"]))
    if kind == "cut":
        content = content[:place]
    elif kind == "flip":
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        content = content[:place] + b"\0" + content[place:]
    path = tmp_path / "damaged"
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"damaged|edited|describe|not one of"):
        echelon.load(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no model"):
        echelon.load(tmp_path / "missing")

    class Evil:
        def __reduce__(self):
            return (print, ("code ran",))

    (tmp_path / "pickle").write_bytes(pickle.dumps(Evil()))
    torch.save({"x": torch.zeros(1)}, tmp_path / "torch")
    header = json.dumps({"__metadata__": {"other": "1"}}).encode()
    (tmp_path / "foreign").write_bytes(struct.pack("<Q", len(header)) + header)
    (tmp_path / "empty").write_bytes(b"")
    for name in ("pickle", "torch", "foreign", "empty"):
        with pytest.raises(ValueError, match=r"damaged or not a file|not one of echelon"):
            echelon.load(tmp_path / name)


def test_a_model_that_cannot_be_written_leaves_the_old_one(
    model: OrdinalClassifier, tmp_path: Path
) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(ValueError, match="could not write"):
        model.save(target)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


# ---- what was fitted is what is saved ------------------------------------------------------------


def test_threads_may_save_to_one_path(
    model: OrdinalClassifier, saved: Path, tmp_path: Path
) -> None:
    failed = []

    def save() -> None:
        try:
            for _ in range(5):
                model.save(tmp_path / "m")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert not failed
    assert (tmp_path / "m").read_bytes() == saved.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


# ---- files that others made ----------------------------------------------------------------------


def test_a_loaded_model_no_longer_needs_its_file(
    model: OrdinalClassifier, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Overwritten in place, cut, or gone: nothing changes in the process that has loaded it."""
    path = tmp_path / "m"
    rows = frame.drop(columns="target")
    copied = copy.deepcopy(model).conformalize(rows, frame["target"])
    copied.save(path)
    loaded = echelon.load(path)
    expected = loaded.predict_proba(rows), loaded.predict_interval(rows, coverage=0.8)
    size = path.stat().st_size
    with open(path, "rb+") as stream:
        stream.write(b"\xff" * size)
    for found, wanted in zip(
        (loaded.predict_proba(rows), loaded.predict_interval(rows, coverage=0.8)), expected,
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(found, wanted)
    os.truncate(path, 0)
    np.testing.assert_array_equal(loaded.predict_interval(rows, coverage=0.8), expected[1])


def test_loads_while_the_file_is_replaced(model: OrdinalClassifier, tmp_path: Path) -> None:
    path, stop = tmp_path / "m", threading.Event()
    model.save(path)
    contents = [path.read_bytes()]
    copy.deepcopy(model).calibrate(*_rows_of(model)).save(path)
    contents.append(path.read_bytes())

    def replace() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            (tmp_path / "new").write_bytes(contents[turn % 2])
            os.replace(tmp_path / "new", path)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(40):
            echelon.load(path)
    finally:
        stop.set()
        writer.join()


def _rows_of(model: OrdinalClassifier) -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.normal(size=(60, 4)), columns=list("abcd"))
    return table.assign(kind="big"), generator.choice(model.classes_, 60)


@pytest.mark.parametrize(
    "options",
    [
        {"hidden": [100_000, 100_000]}, {"hidden": [10**9]}, {"hidden": [10**15] * 2},
        {"hidden": [1] * 100_000}, {"num_frequencies": 10**9},
    ],
    ids=lambda one: str(one)[:30],
)  # fmt: skip
def test_no_more_is_allocated_than_the_file_holds(saved: Path, tmp_path: Path, options) -> None:
    """A small file that describes a large network is refused before the network is made."""
    by_part = {"table": options}
    rewrite(saved, tmp_path / "m", lambda d, t: network_of(d).update(backbone_options=by_part))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    with pytest.raises(ValueError, match="does not describe a model"):
        echelon.load(tmp_path / "m")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB
    assert time.monotonic() - started < 20


@pytest.mark.timeout(20)
def test_pipes_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe, not a file; name a model"):
        echelon.load(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a folder, not a file"):
        echelon.load(tmp_path)
    with pytest.raises(ValueError, match="is a device, not a file"):
        echelon.load("/dev/zero")


@pytest.fixture(scope="module")
def media_models(tmp_path_factory) -> dict[str, Path]:
    """A saved model with a network of timm, and one with a text encoder of transformers."""
    folder = tmp_path_factory.mktemp("media")
    frame, ranks = mixed_table(24)
    quick = {"settings": {"max_epochs": 1, "batch_size": 8}, "random_state": 0, "device": "cpu"}
    image = OrdinalClassifier(
        backbone="timm:resnet18",
        backbone_options={"channels": (16, 16, 16, 16)},
        inputs={"image": {"size": 32}},
        **quick,
    )
    image.fit(list(frame["photo"]), ranks).save(folder / "image")
    encoder = save_tiny_encoder(folder / "encoder")
    text = OrdinalClassifier(backbone=f"hf:{encoder}", **quick)
    text.fit(frame["review"], ranks).save(folder / "text")
    return {"image": folder / "image", "text": folder / "text"}


def _image(**options):
    return lambda d, t: d["model"]["network"]["backbone_options"]["image"].update(options)


def _network(name: str):
    part = "text" if name.startswith("hf:") else "image"
    return lambda d, t: d["model"]["network"]["backbones"].update({part: name})


def _config(**fields):
    return lambda d, t: d["model"]["readers"]["config"].update(fields)


def _no_config(d, t) -> None:
    d["model"]["readers"]["config"] = None
    d["model"]["network"]["backbones"]["text"] = d["parameters"]["backbone"] = "hf:evil/model"


HOSTILE = {  # what is changed, and what the error says
    "image": {
        "checkpoint": (_image(checkpoint_path="CANARY"), "option 'checkpoint_path'"),
        "pretrained": (_image(pretrained=True), "multiple values|option 'pretrained'"),
        "cfg": (_image(pretrained_cfg={"file": "CANARY"}), "option 'pretrained_cfg'"),
        "cfg_url": (_image(pretrained_cfg={"url": "http://evil"}), "option 'pretrained_cfg'"),
        "overlay": (_image(pretrained_cfg_overlay={"file": "CANARY"}), "option 'pretrained_cfg_o"),
        "cache": (_image(cache_dir="CANARY"), "option 'cache_dir'"),
        "features": (_image(features_only=True), "option 'features_only'"),
        "layer": (_image(act_layer="os.system"), "option 'act_layer'"),
        "value": (_image(channels="CANARY"), "channels must be a number"),
        "pool": (_image(global_pool="CANARY"), "global_pool: one of"),
        "hub": (_network("timm:hf-hub:evil/model"), "no network of that name"),
        "hub_": (_network("timm:hf_hub:evil/model"), "no network of that name"),
        "hub_dot": (_network("timm:hf-hub:timm/resnet18.a1_in1k"), "no network of that name"),
        "folder": (_network("timm:local-dir:CANARY"), "no network of that name"),
        "path": (_network("timm:../resnet18"), "no network of that name"),
        "tag": (_network("timm:resnet18.a1_in1k@hf-hub:evil"), "no network of that name"),
        "large": (_network("timm:vit_giant_patch14_224"), "does not describe a model"),
        "deep": (_image(layers=[60_000] * 4), "far larger than its weights"),
        "size": (lambda d, t: encodings_of(d)["image"].update(crop=10**6, resize=10**6), "resize"),
        "weights": (_image(weights="CANARY"), "loaded"),  # those of a fit, which are not needed
    },
    "text": {
        "missing": (_no_config, "the configuration of the text encoder is missing"),
        "auto_map": (_config(auto_map={"AutoModel": "evil/model--m.M"}), "not have 'auto_map'"),
        "quantized": (_config(quantization_config={"quant_method": "x"}), "'quantization_config'"),
        "kernels": (_config(attn_implementation="kernels-community/flash-attn"), "must not have"),
        "kernels_": (_config(_attn_implementation="kernels-community/x"), "must not have"),
        "activation": (_config(hidden_act="kernels-community/activation"), "hidden_act ="),
        "inner": (_config(text_config={"model_type": "bert"}), "must not hold another"),
        "backbone": (_config(backbone_config={"model_type": "x"}), "must not hold another"),
        "type": (_config(model_type="timm_wrapper"), "one of the types albert"),
        "type_list": (_config(model_type=["bert"]), "one of the types albert"),
        "dual": (_config(model_type="encoder-decoder"), "one of the types albert"),
        "layers": (_config(num_hidden_layers=10**9), "cannot have num_hidden_layers"),
        "layers_": (_config(num_hidden_layers=900), "far larger than its weights"),
        "words": (_config(vocab_size=2**24), "far larger than its weights"),
        "nested": (_config(hidden_size={"a": 1}), "cannot have hidden_size"),
        "tokenizer": (lambda d, t: encodings_of(d)["text"].update(document="{}"), "tokenizer"),
        "tokens": (lambda d, t: encodings_of(d)["text"].update(document="evil/model"), "tokeni"),
        "long": (lambda d, t: encodings_of(d)["text"].update(max_tokens=10**12), "max_tokens"),
        "name": (_config(_name_or_path="evil/model"), "loaded"),  # says nothing, and is not read
        "hub": (_network("hf:evil/model"), "loaded"),  # only a fit would look for it
    },
}  # fmt: skip


class _Server(socketserver.ThreadingTCPServer):
    """Counts whoever connects, and answers nothing."""

    daemon_threads = True
    seen = 0

    def process_request(self, request, client_address) -> None:
        self.seen += 1
        self.shutdown_request(request)


def test_hostile_files_run_nothing_and_ask_nobody(
    media_models: dict[str, Path], tmp_path: Path
) -> None:
    """No code, no request, no other file, whatever the file says."""
    canary, ran = tmp_path / "canary", tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return (open, (str(ran), "w"))

    canary.write_bytes(pickle.dumps(Evil()))
    expected = {}
    for kind, cases in HOSTILE.items():
        rewrite(media_models[kind], tmp_path / kind, lambda d, t: None)
        expected[kind] = "loaded"
        for name, (change, message) in cases.items():

            def named(document, tensors, change=change) -> None:
                change(document, tensors)
                text = json.dumps(document).replace("CANARY", str(canary))
                document.update(json.loads(text))

            rewrite(media_models[kind], tmp_path / f"{kind}-{name}", named)
            expected[f"{kind}-{name}"] = message
    with _Server(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        proxies = {f"{name}_proxy": address for name in ("http", "https", "all")}
        environment = {
            **os.environ, **proxies, **{name.upper(): value for name, value in proxies.items()},
            "HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0",
            "HF_HOME": str(tmp_path / "cache"), "TORCH_HOME": str(tmp_path / "cache"),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "tests.hostile", *(str(tmp_path / name) for name in expected)],
            env=environment, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        server.shutdown()
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    for name, message in expected.items():
        assert re.search(message, found[name]["outcome"]), (name, found[name])
        assert found[name]["deeds"] == [], name
    assert server.seen == 0
    assert not ran.exists()
