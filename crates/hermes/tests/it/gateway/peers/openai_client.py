"""The official client of OpenAI for Python, against the API: prints one line per thing that worked."""

import sys

import openai

url, key = sys.argv[1:3]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=30)

print("models", [model.id for model in client.models.list().data])

hello = [{"role": "user", "content": "hello"}]
raw = client.chat.completions.with_raw_response.create(model="hermes-agent", messages=hello)
chat = raw.parse()
session = raw.headers["x-hermes-session-id"]
print("chat", chat.choices[0].message.content, chat.choices[0].finish_reason, chat.usage.total_tokens)
print("session", chat.model_extra["hermes"]["session_id"] == session)

text, last = "", None
for chunk in client.chat.completions.create(
    model="hermes-agent",
    messages=[{"role": "user", "content": "look"}],
    stream=True,
    stream_options={"include_usage": True},
    extra_headers={"X-Hermes-Session-Id": session, "Idempotency-Key": "py-1"},
):
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
    last = chunk
print("stream", repr(text), last.usage.total_tokens)

with client.chat.completions.stream(model="hermes-agent", messages=hello) as stream:
    stream.until_done()
    print("helper", stream.get_final_completion().choices[0].message.content)

first = client.responses.create(model="hermes-agent", input="hello", instructions="be kind")
print("response", first.output_text, first.status)
second = client.responses.create(model="hermes-agent", input="look", previous_response_id=first.id)
print("items", [item.type for item in second.output])
print("kept", client.responses.retrieve(second.id).output_text)
kinds = []
for event in client.responses.create(model="hermes-agent", input="hello", stream=True):
    kinds.append(event.type)
print("events", kinds[0], kinds[-1], "response.output_text.delta" in kinds)
with client.responses.stream(model="hermes-agent", input="hello") as stream:
    stream.until_done()
    print("response helper", stream.get_final_response().output_text)
client.responses.delete(first.id)
try:
    client.responses.retrieve(first.id)
except openai.NotFoundError as error:
    print("gone", error.code)

try:
    client.chat.completions.create(model="hermes-agent", messages=[])
except openai.BadRequestError as error:
    print("refused", error.param)
try:
    openai.OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0).models.list()
except openai.AuthenticationError as error:
    print("stranger", error.code)
