# Python 3, with nothing but its standard library.
import base64
import http.client
import json
import time
import urllib.error
import urllib.request

URL = {{url}}
KEY = {{key}}


def call(method, path, body=None):
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + KEY, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


# Creates a run. Sent once: every repeated POST starts another run.
try:
    run = call("POST", "/v1/agents", {
        "template_id": {{template}},
        "name": "Words of notes.txt",
        "input_text": "How many words does notes.txt have?",
        "files": [{"filename": "notes.txt", "content_base64": base64.b64encode(b"one two three\n").decode()}],
    })["agent_id"]
except urllib.error.HTTPError as error:
    raise SystemExit(f"{error.code}: {error.read().decode()}")

# Reads it every 5 seconds while it is running. A GET can be repeated: after 502,
# 503 and lost connections it waits 1, 2, 4 … 30 seconds.
pause = 1
while True:
    try:
        state = call("GET", "/v1/agents/" + run)
    except urllib.error.HTTPError as error:
        if error.code not in (502, 503):
            raise SystemExit(f"{error.code}: {error.read().decode()}")
    except (OSError, http.client.HTTPException):
        pass  # No answer came.
    else:
        pause = 1
        if state["loop_status"] != "running":
            break
        time.sleep(5)
        continue
    time.sleep(pause)
    pause = min(pause * 2, 30)

print(state["loop_status"])  # finished, technical_error or terminated
for message in state["transcript"]:
    print(f"{message['role']}: {message['text']}")
