// Signs an event as GitHub does.
import { pathToFileURL } from "node:url";
const { sign } = await import(pathToFileURL(`${process.env.PEER}/node_modules/@octokit/webhooks-methods/dist-node/index.js`).href)
  .catch(() => import(pathToFileURL(`${process.env.PEER}/node_modules/@octokit/webhooks-methods/dist-bundle/index.js`).href));
const [secret, body] = process.argv.slice(2);
process.stdout.write(await sign(secret, body));
