// The process of a project's own code: loads the files that it is told of, and runs their handlers on call. It speaks
// lines of JSON over file descriptor 3, which ends with the service.
import { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

// What it was started with is no variable of own code.
delete process.env.NODE_OPTIONS;

const socket = new Socket({ fd: 3 });
const send = (message) => socket.write(`${JSON.stringify(message)}\n`);
/** The service ends a process that says more at once, and with it every other call. */
const MAX_ANSWER_CHARACTERS = 1.5 * 1024 * 1024;
socket.on('error', () => process.exit(0));
socket.on('close', () => process.exit(0));

let settings;
let createClient;
const handlers = new Map();
/** Addresses by method and path. */
const addresses = new Map();
const ADDRESS = /^(GET|POST|PUT|PATCH|DELETE) \/([\w.~-]+(?:\/[\w.~-]+)*)$/;

/** Requests of a handler that the service waits for say that they are one's. */
const fetchDeeper = (depth) => (url, init) => {
  const headers = new Headers(init?.headers);
  headers.set('bsvc-hook-depth', String(depth));
  return fetch(url, { ...init, headers });
};

function openApi(credentials, depth) {
  const { url, key } = settings.api;
  const needUrl = () => {
    throw new Error('This process serves no API: set BSVC_PUBLIC_URL so that handlers reach it');
  };
  const open = (options) =>
    url
      ? createClient({ url, ...(depth > 0 && { fetch: fetchDeeper(depth) }), ...options })
      : new Proxy({}, { get: needUrl });
  let own;
  return new Proxy(Object.create(null), {
    get(_, name) {
      if (name === 'then') return undefined;
      if (name === 'as') return () => open(asCaller(credentials));
      return (own ??= open({ key }))[name];
    },
  });
}

function asCaller(credentials) {
  if (!credentials?.key) throw new Error('Nobody stands behind this call: use api itself');
  const token = /^Bearer (.+)$/i.exec(credentials.authorization ?? '')?.[1];
  return { key: credentials.key, ...(token && { token }) };
}

async function load(file) {
  const exports = (await import(pathToFileURL(join(settings.dir, file)).href)).default;
  if (typeof exports !== 'object' || exports === null) throw new Error('it exports no object of handlers by default');
  const found = [];
  for (const [name, value] of Object.entries(exports)) {
    const { handle, public: isPublic = false } = typeof value === 'function' ? { handle: value } : (value ?? {});
    if (typeof handle !== 'function') throw new Error(`${name} is no function, and no { handle, public }`);
    found.push({ name, handle, isPublic: isPublic === true });
    if (!/^[A-Z]+ /.test(name)) continue;
    if (!ADDRESS.test(name)) throw new Error(`${name} is no address: use GET, POST, PUT, PATCH or DELETE and /<name>`);
    if (addresses.has(name)) throw new Error(`${name} is in ${addresses.get(name).handler.split('#')[0]} already`);
  }
  // A file is loaded whole or not at all.
  for (const { name, handle, isPublic } of found) {
    const handler = `${file}#${name}`;
    handlers.set(handler, handle);
    if (ADDRESS.test(name)) addresses.set(name, { name, handler, isPublic });
  }
}

async function begin(told) {
  settings = told;
  ({ createClient } = await import(told.client));
  for (const file of told.files) {
    try {
      await load(file);
    } catch (error) {
      console.error(`${file} cannot be loaded: ${error?.stack ?? error}`);
    }
  }
  send({ ready: [...addresses.values()] });
}

class InvalidJson extends Error {}

/** A request as handlers of addresses see it. */
function openRequest({ body, ...told }) {
  const rawBody = Buffer.from(body, 'base64');
  return {
    ...told,
    rawBody,
    get body() {
      const isJson = /^application\/(.+\+)?json\b/i.test(told.headers['content-type'] ?? '');
      try {
        const text = new TextDecoder('utf-8', { fatal: isJson }).decode(rawBody);
        return isJson ? JSON.parse(text) : text;
      } catch (error) {
        throw new InvalidJson(`The body is not valid JSON: ${error.message}`);
      }
    },
  };
}

/** What a handler of an address returns, as it is sent: nothing, a Response, or { status, headers, body }. */
async function toReply(returned) {
  if (returned === undefined || returned === null) return { status: 204, headers: [], body: '' };
  if (returned instanceof Response) {
    const bytes = Buffer.from(await returned.arrayBuffer());
    return { status: returned.status, headers: [...returned.headers], body: bytes.toString('base64') };
  }
  const unknown = typeof returned === 'object' ? Object.keys(returned).find((name) => !PARTS.has(name)) : 'a value';
  if (unknown !== undefined)
    throw new Error(`An address returns a Response or { status, headers, body }, not ${unknown}`);
  const { status, headers = {}, body } = returned;
  const sent = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  const [type, bytes] = toBytes(body);
  if (type && !sent.some(([name]) => name.toLowerCase() === 'content-type')) sent.push(['content-type', type]);
  return { status: status ?? (body === undefined ? 204 : 200), headers: sent, body: bytes.toString('base64') };
}

const PARTS = new Set(['status', 'headers', 'body']);

function toBytes(body) {
  if (body === undefined) return [null, Buffer.alloc(0)];
  if (typeof body === 'string') return ['text/plain; charset=utf-8', Buffer.from(body)];
  if (body instanceof Uint8Array) return ['application/octet-stream', Buffer.from(body)];
  return ['application/json; charset=utf-8', Buffer.from(JSON.stringify(body))];
}

async function run({ id, handler, payload, credentials, depth }) {
  try {
    const handle = handlers.get(handler);
    if (!handle) throw new Error(`There is no handler ${handler}`);
    const api = openApi(credentials, depth);
    const { request, event, data } = payload;
    if (event === 'test.ping') return send({ id, answer: null });
    // Events come as webhooks have them; handlers call the document the same everywhere.
    if (data) payload.document = data;
    const answer = request
      ? await toReply(await handle({ ...payload, request: openRequest(request), api }))
      : await handle({ ...payload, api });
    const text = JSON.stringify({ id, answer: answer === undefined ? null : answer });
    if (text.length > MAX_ANSWER_CHARACTERS) throw new Error('The answer is too large: 1 MiB is the most');
    socket.write(`${text}\n`);
  } catch (error) {
    if (error instanceof InvalidJson) return send({ id, answer: { invalidJson: error.message } });
    console.error(`${handler}: ${error?.stack ?? error}`);
    send({ id, error: String(error?.message ?? error).slice(0, 500) });
  }
}

process.on('unhandledRejection', (error) => console.error(`unhandled: ${error?.stack ?? error}`));
createInterface({ input: socket }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.begin) void begin(message.begin);
  else if (message.ping) send({ pong: message.ping });
  else void run(message);
});
