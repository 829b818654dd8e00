// A complete OpenID provider, and beside it the smallest MCP server that takes only its tokens.
// Arguments: the folder oidc-provider is installed in, a port, and how many seconds its access tokens live.
import http from "node:http";
import { pathToFileURL } from "node:url";

const [folder, port, lifetime] = process.argv.slice(2);
const library = pathToFileURL(`${folder}/node_modules/oidc-provider/lib/index.js`);
const { default: Provider } = await import(library);

const base = `http://127.0.0.1:${port}`;
const resource = `${base}/mcp`;

const provider = new Provider(base, {
  scopes: ["openid", "offline_access", "read", "write"],
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  issueRefreshToken: async () => true,
  features: {
    registration: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: "read write",
        audience: resource,
        accessTokenTTL: Number(lifetime),
        accessTokenFormat: "opaque",
      }),
    },
  },
});

const answers = {
  initialize: () => ({
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "behind-oidc", version: "1" },
  }),
  "tools/list": () => ({
    tools: [{ name: "append", inputSchema: { type: "object", properties: { word: { type: "string" } } } }],
  }),
  "tools/call": ({ arguments: { word } }) => ({ content: [{ type: "text", text: `appended ${word}` }] }),
  ping: () => ({}),
};

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body === undefined ? "" : JSON.stringify(body));
}

async function serveMcp(request, response) {
  const [, token] = (request.headers.authorization ?? "").split(" ");
  const found = token && (await provider.AccessToken.find(token));
  if (!found?.isValid || found.aud !== resource) {
    const challenge = `Bearer error="invalid_token", resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`;
    return send(response, 401, { error: "invalid_token" }, { "www-authenticate": challenge });
  }
  if (request.method !== "POST") return send(response, 405);
  let body = "";
  for await (const chunk of request) body += chunk;
  const { id, method, params } = JSON.parse(body);
  if (id === undefined) return send(response, 202);
  const answer = answers[method];
  if (!answer) return send(response, 200, { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
  return send(response, 200, { jsonrpc: "2.0", id, result: answer(params) });
}

const serveProvider = provider.callback();
const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, base);
  if (pathname === "/mcp") return serveMcp(request, response);
  if (pathname === "/.well-known/oauth-protected-resource/mcp") {
    return send(response, 200, { resource, authorization_servers: [base], scopes_supported: ["read"] });
  }
  return serveProvider(request, response);
});
server.listen(Number(port), "127.0.0.1");
