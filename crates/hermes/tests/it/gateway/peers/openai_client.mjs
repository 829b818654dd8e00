// The official client of OpenAI for Node, against the API: prints one line per thing that worked.
import { createRequire } from "node:module";
const require = createRequire(process.env.PEER + "/");
const { OpenAI } = require("openai");

const [url, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

console.log("models", (await client.models.list()).data.map((model) => model.id).join());
const messages = [{ role: "user", content: "hello" }];
const { data, response } = await client.chat.completions.create({ model: "hermes-agent", messages }).withResponse();
const session = response.headers.get("x-hermes-session-id");
console.log("chat", data.choices[0].message.content, data.hermes.session_id === session);

let text = "";
const stream = await client.chat.completions.create(
  { model: "hermes-agent", messages: [{ role: "user", content: "look" }], stream: true },
  { headers: { "X-Hermes-Session-Id": session } },
);
for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
console.log("stream", JSON.stringify(text));

const helper = client.chat.completions.stream({ model: "hermes-agent", messages });
console.log("helper", (await helper.finalChatCompletion()).choices[0].message.content);

const first = await client.responses.create({ model: "hermes-agent", input: "hello" });
console.log("response", first.output_text, first.status);
const kinds = [];
for await (const event of await client.responses.create({
  model: "hermes-agent", input: "look", previous_response_id: first.id, stream: true,
})) kinds.push(event.type);
console.log("events", kinds[0], kinds.at(-1));
const final = await client.responses.stream({ model: "hermes-agent", input: "hello" }).finalResponse();
console.log("response helper", final.output_text);
try {
  await client.chat.completions.create({ model: "hermes-agent", messages: [] });
} catch (error) {
  console.log("refused", error.status, error.param);
}
