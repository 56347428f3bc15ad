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
socket.on('error', () => process.exit(0));
socket.on('close', () => process.exit(0));

let settings;
let createClient;
const handlers = new Map();

/** Requests of a handler say that they are one's. */
const fetchDeeper = (url, init) => {
  const headers = new Headers(init?.headers);
  headers.set('bsvc-hook-depth', '1');
  return fetch(url, { ...init, headers });
};

function openApi(credentials) {
  const { url, key } = settings.api;
  const needUrl = () => {
    throw new Error('This process serves no API: set BSVC_PUBLIC_URL so that handlers reach it');
  };
  const open = (options) =>
    url ? createClient({ url, fetch: fetchDeeper, ...options }) : new Proxy({}, { get: needUrl });
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
  for (const [name, value] of Object.entries(exports)) {
    if (typeof value !== 'function') throw new Error(`${name} is no function`);
    handlers.set(`${file}#${name}`, value);
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
  send({ ready: true });
}

async function run({ id, handler, payload, credentials }) {
  try {
    const handle = handlers.get(handler);
    if (!handle) throw new Error(`There is no handler ${handler}`);
    const answer = await handle({ ...payload, api: openApi(credentials) });
    send({ id, answer: answer === undefined ? null : answer });
  } catch (error) {
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
