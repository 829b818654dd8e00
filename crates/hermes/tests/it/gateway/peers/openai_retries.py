"""The official client of OpenAI for Python as people use it: it tries again by itself, where it may."""

import sys

import openai

url, key = sys.argv[1:3]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, timeout=30)
assert client.max_retries > 0

look = {"model": "hermes-agent"}
try:
    client.chat.completions.create(**look, messages=[{"role": "user", "content": "look"}])
except openai.InternalServerError as error:
    print("chat", error.status_code, error.code)
try:
    client.responses.create(**look, input="look")
except openai.InternalServerError as error:
    print("response", error.status_code, error.code)
