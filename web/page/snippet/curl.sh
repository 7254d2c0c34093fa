#!/usr/bin/env bash
set -eu
url={{url}}
key={{key}}

# Creates a run. Sent once: every repeated POST starts another run.
if ! answer=$(curl --silent --show-error --fail-with-body --max-time 60 "$url/v1/agents" \
  --header "Authorization: Bearer $key" --header 'Content-Type: application/json' --data '{
    "template_id": "{{template}}",
    "name": "Words of notes.txt",
    "input_text": "How many words does notes.txt have?",
    "files": [{"filename": "notes.txt", "content_base64": "b25lIHR3byB0aHJlZQo="}]
  }'); then
  printf '%s\n' "$answer" >&2
  exit 1
fi
run=$(printf '%s' "$answer" | sed -n 's/.*"agent_id" *: *"\([^"]*\)".*/\1/p')

# Reads it every 5 seconds while it is running. A GET can be repeated: after 502,
# 503 and lost connections it waits 1, 2, 4 … 30 seconds.
pause=1
while :; do
  answer=$(curl --silent --show-error --max-time 60 --write-out '\n%{http_code}' \
    --header "Authorization: Bearer $key" "$url/v1/agents/$run") || answer=$'\n'000
  status=${answer##*$'\n'} body=${answer%$'\n'*}
  case $status in
  200)
    pause=1
    grep -q '"loop_status" *: *"running"' <<<"$body" || break
    sleep 5
    ;;
  000 | 502 | 503)
    sleep "$pause"
    pause=$((pause < 15 ? pause * 2 : 30))
    ;;
  *)
    printf '%s\n' "$body" >&2
    exit 1
    ;;
  esac
done

# loop_status is finished, technical_error or terminated; the last message of
# transcript whose role is output_from_agent is the answer.
printf '%s\n' "$body"
