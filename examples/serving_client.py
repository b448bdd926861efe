"""A model behind an address: start ``echelon serve``, ask it over HTTP, and end it."""

import json
import subprocess
import sys
import urllib.request

import pandas as pd

import echelon

data = echelon.data.make_friedman(400, num_classes=4)
frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
model = echelon.OrdinalBoosting(rounds=30, random_state=0).fit(frame[:300], data.ranks[:300])
model.save("served.echelon")

# On a server this is a command of its own: echelon serve served.echelon --port 8000
command = [sys.executable, "-m", "echelon", "serve", "served.echelon", "--port", "0", "--json"]
server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    address = json.loads(server.stdout.readline())["address"]

    def ask(path: str, rows: list[dict[str, float]]) -> dict:
        """The answer to a request with rows in it."""
        body = json.dumps(rows).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(address + path, body, headers)) as reply:
            return json.load(reply)

    answer = ask("/predict", frame[300:303].to_dict("records"))
    print(json.dumps(answer, indent=2)[:400])
finally:
    server.terminate()
    server.wait(timeout=20)
