// The official client of OpenAI for Node as people use it: it tries again by itself, where it may.
import { createRequire } from "node:module";
const require = createRequire(process.env.PEER + "/");
const { OpenAI } = require("openai");

const [url, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
if (!(client.maxRetries > 0)) throw new Error("it never tries again");

const look = { model: "hermes-agent" };
const told = (name) => (error) => console.log(name, error.status, error.code);
await client.chat.completions.create({ ...look, messages: [{ role: "user", content: "look" }] }).catch(told("chat"));
await client.responses.create({ ...look, input: "look" }).catch(told("response"));
