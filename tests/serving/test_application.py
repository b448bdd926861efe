"""The application from outside: what is asked over HTTP, and what is never answered."""

import collections
import http.client
import io
import json
import shutil
import socket
import threading
import time

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.ipc
import pytest

from echelon import OrdinalBoosting
from echelon.models.document import fingerprint
from echelon.serving.refusal import Limits
from tests.serving.client import Client, serving
from tests.serving.malformed import ARROW, CSV, changed_requests, stream_of, wrong_requests

SECRET = b"a-token-of-twenty-letters"


def features(table: pd.DataFrame, count: int = 50) -> pd.DataFrame:
    return table.drop(columns="grade").head(count)


def records(frame: pd.DataFrame) -> list[dict]:
    return json.loads(frame.to_json(orient="records", date_format="iso", double_precision=15))


# ---- answers equal predict -----------------------------------------------------------------------


def test_json_csv_and_arrow_give_what_the_model_predicts(client: Client, fitted, table) -> None:
    frame = features(table)
    expected, labels = fitted.predict_proba(frame), fitted.predict(frame)
    ends = fitted.predict_interval(frame)
    said = client.ask("/predict", records(frame)).json()
    assert said["classes"] == ["low", "mid", "high"]
    rows = said["predictions"]
    np.testing.assert_allclose([row["probabilities"] for row in rows], expected, atol=1e-6)
    assert [row["prediction"] for row in rows] == labels.tolist()
    assert [row["interval"] for row in rows] == ends.tolist()
    answer = client.ask("/predict", frame.to_csv(index=False), content_type=CSV)
    assert answer.headers["content-type"] == f"{CSV}; charset=utf-8"
    read = pd.read_csv(io.BytesIO(answer.body))
    names = ["prediction", "lower", "upper", "probability_low", "probability_mid",
             "probability_high", "outside"]  # fmt: skip
    assert list(read) == names
    np.testing.assert_allclose(read[names[3:6]], expected, atol=1e-6)
    sent = stream_of(pyarrow.Table.from_pandas(frame, preserve_index=False))
    answer = client.ask("/predict", sent, content_type=ARROW)
    given = pyarrow.ipc.open_stream(answer.body).read_pandas()
    assert list(given) == names
    np.testing.assert_allclose(given[names[3:6]], expected, atol=1e-6)
    assert given["prediction"].tolist() == labels.tolist()


def test_one_row_is_an_object_and_any_answer_can_be_asked_for(
    client: Client, fitted, table
) -> None:
    row = records(features(table, 1))[0]
    answer = client.ask("/predict", {**row, "a": str(row["a"])}, accept="text/csv")
    read = pd.read_csv(io.BytesIO(answer.body))
    expected = fitted.predict_proba(features(table, 1))
    np.testing.assert_allclose(read.iloc[:, 3:6], expected, atol=1e-6)


def test_requests_that_come_together_share_a_pass_and_keep_their_answers(
    client: Client, fitted, table
) -> None:
    frame = features(table, 60)
    rows, expected = records(frame), fitted.predict_proba(frame)
    passes, total = client.service.predicting.passes, client.service.predicting.rows
    answers: dict[int, object] = {}

    def ask(first: int) -> None:
        other = Client(client.port)
        for i in range(first, 60, 12):
            # every fourth is wrong, and spoils nothing
            body = {**rows[i], "a": "many"} if i % 4 == 3 else rows[i]
            answers[i] = other.ask("/predict", body)
        other.close()

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, answer in answers.items():
        if i % 4 == 3:
            assert answer.status == 422
            assert "column 'a' must hold numbers" in answer.json()["error"]
        else:
            (given,) = answer.json()["predictions"]
            np.testing.assert_allclose(given["probabilities"], expected[i], atol=1e-6)
    assert client.service.predicting.rows - total == 60
    assert client.service.predicting.passes - passes < 60


def test_rows_outside_the_training_rows_are_told(client: Client, table) -> None:
    row = {**records(features(table, 1))[0], "a": 99.0, "kind": "huge"}
    (said,) = client.ask("/predict", row).json()["predictions"]
    assert said["outside"] == ["a", "kind"]


def test_reasons_add_up_and_speak(client: Client, fitted, table) -> None:
    frame = features(table, 2)
    said = client.ask("/explain", records(frame)).json()
    for reason, row in zip(said["reasons"], range(2), strict=True):
        k = ["low", "mid", "high"].index(reason["at_least"]) - 1
        end = fitted.predict_exceedance(frame)[row, k]
        total = reason["typical_probability"] + sum(reason["contributions"].values())
        assert total == pytest.approx(end, abs=1e-4)
        assert reason["sentences"]
    answer = client.ask("/explain", records(features(table, 21)))
    assert answer.status == 413
    assert "at most 20 rows to explain" in answer.json()["error"]


# ---- what is wrong -------------------------------------------------------------------------------


def test_wrong_requests_get_a_sentence_and_the_server_goes_on(
    client: Client, fitted, table
) -> None:
    """The quick form; tests/slow sends ten thousand and watches the memory."""
    refuse_all(client, table, wrong=400, changed=200)
    row = records(features(table, 1))[0]
    (said,) = client.ask("/predict", row).json()["predictions"]
    expected = fitted.predict_proba(features(table, 1))[0]
    np.testing.assert_allclose(said["probabilities"], expected, atol=1e-6)
    assert client.service.held == 0


def refuse_all(
    client: Client, table: pd.DataFrame, wrong: int, changed: int, seed: int = 0
) -> None:
    """Send wrong requests, and see that each is refused with a sentence."""
    statuses: collections.Counter = collections.Counter()
    frame = features(table, 300)
    for sent in wrong_requests(frame, wrong, seed):
        statuses[sent.family, check(client, sent, 400)] += 1
    for sent in changed_requests(frame, changed, seed):
        statuses[sent.family, check(client, sent, 200)] += 1
    assert {status for _, status in statuses} >= {400, 404, 405, 413, 415, 422}


def check(client: Client, sent, lowest: int) -> int:
    headers = {"content_type": sent.content_type, **sent.headers}
    try:
        answer = client.ask(sent.path, sent.body, method=sent.method, **headers)
    except http.client.InvalidURL:  # which this client does not even send
        return 400
    except UnicodeEncodeError:
        return 400
    sample, said = sent.body[:300], answer.body[:300]
    shown = f"{sent.family} {sent.content_type} {sample!r}: {answer.status} {said!r}"
    assert lowest <= answer.status < 500, shown
    if answer.status >= 400:
        sentence = answer.json()["error"]
        assert 10 < len(sentence) < 700, shown
        assert "\n" not in sentence
    return answer.status


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"a": 1}, "row 1 must have the 6 columns of the model, and lacks 'b'; write null"),
        ("5", "a body of JSON must be an object for one row"),
        ("{", "the body must be JSON, and is none"),
        ("[NaN]", "NaN is no number of JSON; write null"),
        ("[" * 100_000, "it is nested deep"),
        ("[]", "at least 1 row"),
    ],
)
def test_a_refusal_says_what_was_required_and_what_came(client: Client, body, said: str) -> None:
    answer = client.ask("/predict", body, content_type="application/json")
    assert 400 <= answer.status < 500
    assert said in answer.json()["error"]


def test_a_misspelled_column_is_named_with_the_one_that_was_meant(client: Client, table) -> None:
    row = records(features(table, 1))[0]
    row["kidn"] = row.pop("kind")
    assert "got 'kidn': did you mean 'kind'?" in client.ask("/predict", row).json()["error"]


def test_a_body_that_never_ends_is_cut_off(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        raw.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n")  # fmt: skip
        piece = b"2710\r\n" + b" " * 10_000 + b"\r\n"
        try:
            for _ in range(100):
                raw.sendall(piece)
        except OSError:  # the server has closed it already
            pass
        assert raw.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_come_is_not_waited_for(model_path) -> None:
    with (
        serving(model_path, Limits(seconds=0.3)) as client,
        socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw,
    ):
        raw.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 100\r\n\r\n{")  # fmt: skip
        assert raw.recv(100).startswith(b"HTTP/1.1 408")


def test_a_client_that_leaves_takes_nothing_with_it(client: Client, table) -> None:
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        raw.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 5000\r\n\r\n" + b" " * 1000)  # fmt: skip
        until(lambda: client.service.held == 1000)
    until(lambda: client.service.held == 0)
    assert client.lines[-1].endswith(" left")
    assert client.ask("/predict", records(features(table, 1))).status == 200


def until(holds) -> None:
    """Wait for something, not for ever."""
    end = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_replaced_file_serves_without_a_request_that_fails(model_path, table, tmp_path) -> None:
    path = tmp_path / "m"
    shutil.copy(model_path, path)
    with serving(path) as client:
        first = client.ask("/info").json()["model"]
        other = OrdinalBoosting(rounds=4, classes=["low", "mid", "high"], random_state=1)
        other.fit(table.drop(columns="grade"), table["grade"]).save(path)
        row, seen = records(features(table, 1)), set()

        def is_new() -> bool:
            answer = client.ask("/predict", row)
            assert answer.status == 200
            seen.add(answer.json()["model"])
            return seen == {first, fingerprint(other)}

        until(is_new)
        (said,) = client.ask("/predict", row).json()["predictions"]
        expected = other.predict_proba(features(table, 1))[0]
        np.testing.assert_allclose(said["probabilities"], expected, atol=1e-6)


def test_a_full_queue_says_when_to_come_back(model_path, table, monkeypatch) -> None:
    with serving(model_path, Limits(waiting=1)) as client:
        go_on = threading.Event()
        predict = client.service.file.current.predict_each
        monkeypatch.setattr(
            client.service.file.current,
            "predict_each",
            lambda bodies: (go_on.wait(10), predict(bodies))[1],
        )
        row = records(features(table, 1))[0]
        others = [Client(client.port) for _ in range(2)]
        answers = []
        threads = []
        for other in others:  # one in the pass, one that waits
            threads.append(
                threading.Thread(target=lambda o=other: answers.append(o.ask("/predict", row)))
            )
            threads[-1].start()
            time.sleep(0.2)
        refused, ready = client.ask("/predict", row), client.ask("/ready")
        assert client.ask("/health").status == 200
        go_on.set()
        for thread in threads:
            thread.join()
        assert (refused.status, ready.status) == (503, 503)
        assert int(refused.headers["retry-after"]) >= 1
        assert "come back in" in refused.json()["error"]
        assert [answer.status for answer in answers] == [200, 200]
        assert client.ask("/ready").status == 200
        for other in others:
            other.close()


# ---- token, words, counters ----------------------------------------------------------------------


def test_nothing_is_answered_without_the_token_but_that_it_lives(model_path, table) -> None:
    with serving(model_path, token=SECRET) as client:
        row = records(features(table, 1))[0]
        token = SECRET.decode()
        for header in ("", "Bearer x", f"Basic {token}", f"Bearer {token}x"):
            wrong = {"authorization": header} if header else {}
            for path in ("/predict", "/explain", "/info", "/metrics", "/openapi.json", "/nothing"):
                answer = client.ask(
                    path, row if path in ("/predict", "/explain") else None, **wrong
                )
                assert answer.status == 401, path
                assert answer.headers["www-authenticate"] == "Bearer"
        assert client.ask("/health").status == client.ask("/ready").status == 200
        right = {"authorization": f"Bearer {SECRET.decode()}"}
        assert client.ask("/predict", row, **right).status == 200
        document = client.ask("/openapi.json", **right).json()
        assert document["security"] == [{"token": []}]


def test_nothing_of_a_request_is_written_down_but_size_time_and_outcome(
    client: Client, table
) -> None:
    before = len(client.lines)
    row = {**records(features(table, 1))[0], "kind": "SECRET"}
    client.ask("/predict", row)
    client.ask("/predict", {**row, "a": "SECRET"})
    client.ask("/SECRET", row, method="SECRET", secret="SECRET")
    time.sleep(0.1)
    lines = client.lines[before:]
    assert len(lines) == 3
    assert "SECRET" not in "".join(lines)
    assert lines[0].startswith(f"POST /predict 200 1 rows {len(json.dumps(row))} bytes ")
    assert lines[2].startswith("other other 404 0 rows ")


def test_a_fault_of_ours_is_named_by_its_type_alone(client: Client, table, monkeypatch) -> None:
    def fail(bodies):
        raise KeyError("SECRET")

    monkeypatch.setattr(client.service.file.current, "predict_each", fail)
    answer = client.ask("/predict", records(features(table, 1)))
    assert answer.status == 500
    assert b"SECRET" not in answer.body
    assert "KeyError" in answer.json()["error"]
    monkeypatch.undo()
    assert client.ask("/predict", records(features(table, 1))).status == 200


def test_counters_are_text_that_prometheus_reads(client: Client, table) -> None:
    client.ask("/predict", records(features(table, 3)))
    answer = client.ask("/metrics")
    lines = answer.body.decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert int(values['echelon_requests_total{endpoint="/predict",status="200"}']) >= 1
    assert sum(int(n) for name, n in values.items() if name.startswith("echelon_predicted")) >= 3
    within = [
        int(n)
        for name, n in values.items()
        if name.startswith('echelon_request_seconds_bucket{endpoint="/predict"')
    ]
    assert within == sorted(within)
    assert within[-1] == int(values['echelon_request_seconds_count{endpoint="/predict"}'])
    helped = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(helped)) == len(helped)
