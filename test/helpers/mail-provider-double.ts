import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from './listen.js';

/** A mail as the provider took it. */
export interface AcceptedMail {
  id: string;
  key: string;
  from: string;
  to: string[];
  subject: string;
  html?: string;
  text?: string;
  reply_to?: string[];
}

/** What the double answers to the next calls of `POST /emails`, one entry each; afterwards it accepts. */
export type Mood =
  | { status: number; name?: string; headers?: Record<string, string> }
  /** Accepts the mail but closes the connection without an answer. */
  | 'accept-silently'
  /** Accepts the mail and never answers. */
  | 'accept-and-hang'
  | 'reset';

type Body = Record<string, unknown>;

export interface MailProviderDouble {
  url: string;
  accepted: AcceptedMail[];
  /** Every call: method, path, and the key it came with. */
  calls: { method: string; path: string; key: string; body: Body }[];
  moods: Mood[];
  /** Resolves when a mail was accepted without an answer. */
  hung: Promise<void>;
  close(): Promise<void>;
}

/**
 * The mail provider's HTTP surface as far as the `resend` package calls it, with idempotency keys and ill humours. A
 * key `re_422` is answered that status, whatever is called.
 */
export async function startMailProviderDouble(): Promise<MailProviderDouble> {
  const accepted: AcceptedMail[] = [];
  const byIdempotencyKey = new Map<string, string>();
  const objects = new Map<string, Body>();
  const calls: MailProviderDouble['calls'] = [];
  const moods: Mood[] = [];
  let made = 0;
  let onHang: () => void = () => undefined;
  const hung = new Promise<void>((resolve) => (onHang = resolve));

  const accept = (request: IncomingMessage, body: Body): string => {
    const idempotencyKey = String(request.headers['idempotency-key']);
    const known = byIdempotencyKey.get(idempotencyKey);
    if (known) return known;
    const id = `email-${++made}`;
    byIdempotencyKey.set(idempotencyKey, id);
    accepted.push({ ...(body as unknown as AcceptedMail), to: [body.to].flat() as string[], id, key: keyOf(request) });
    return id;
  };

  const isRefused = ({ to }: Body): boolean => [to].flat().some((each) => String(each).startsWith('refused@'));

  const sendEmail = (request: IncomingMessage, response: ServerResponse, body: Body): void => {
    const mood = moods.shift();
    // A call that repeats a key is not judged by its content again: it gets the answer of the first.
    const known = byIdempotencyKey.get(String(request.headers['idempotency-key']));
    if (known && typeof mood === 'object' && mood.status === 422) return answer(response, 200, { id: known });
    if ((mood === 'accept-silently' || mood === 'accept-and-hang') && !isRefused(body)) accept(request, body);
    if (mood === 'accept-and-hang') {
      onHang();
    } else if (mood === 'accept-silently' || mood === 'reset') {
      request.socket.destroy();
    } else if (mood) {
      const error = { statusCode: mood.status, name: mood.name ?? 'validation_error', message: 'the double says no' };
      answer(response, mood.status, error, mood.headers);
    } else if (isRefused(body)) {
      answer(response, 422, { statusCode: 422, name: 'validation_error', message: 'Invalid `to` field' });
    } else {
      answer(response, 200, { id: accept(request, body) });
    }
  };

  /** The batch call under permissive validation: what is refused is named by its place, the rest is taken. */
  const batches = new Map<string, Body>();
  const sendBatch = (request: IncomingMessage, response: ServerResponse, mails: readonly Body[]): void => {
    const mood = moods.shift();
    const idempotencyKey = String(request.headers['idempotency-key']);
    const known = batches.get(idempotencyKey);
    if (mood && typeof mood === 'object' && !(known && mood.status === 422)) {
      const error = { statusCode: mood.status, name: mood.name ?? 'validation_error', message: 'the double says no' };
      return answer(response, mood.status, error, mood.headers);
    }
    if (known) return answer(response, 200, known);
    const errors = mails.flatMap((mail, index) => (isRefused(mail) ? [{ index, message: 'Invalid `to` field' }] : []));
    const data = mails
      .filter((mail) => !isRefused(mail))
      .map((mail) => {
        const id = `email-${++made}`;
        accepted.push({
          ...(mail as unknown as AcceptedMail),
          to: [mail.to].flat() as string[],
          id,
          key: keyOf(request),
        });
        return { id };
      });
    const reply = { data, ...(request.headers['x-batch-validation'] === 'permissive' && { errors }) };
    batches.set(idempotencyKey, reply);
    if (mood === 'accept-and-hang') return onHang();
    if (mood) return void request.socket.destroy();
    answer(response, 200, reply);
  };

  /**
   * Segments, contacts and broadcasts: what is posted is kept under its address, for the account whose key it came
   * with.
   */
  const handleObject = (method: string, path: string, body: Body, response: ServerResponse): void => {
    if (method === 'POST' && path.endsWith('/send')) {
      const address = path.slice(0, -'/send'.length);
      return objects.has(address) ? answer(response, 200, { id: address.split('/').at(-1) }) : notFound(response);
    }
    if (method === 'POST') {
      const id = `${path.split('/').at(-1)!.slice(0, -1)}-${++made}`;
      objects.set(`${path}/${id}`, { ...body, id });
      return answer(response, 201, { ...body, id });
    }
    if (method === 'GET' && /(segments|audiences|contacts|broadcasts)$/.test(path)) {
      const data = [...objects].filter(([address]) => address.startsWith(`${path}/`)).map(([, object]) => object);
      return answer(response, 200, { object: 'list', has_more: false, data });
    }
    const existing = objects.get(path);
    if (!existing) return notFound(response);
    if (method === 'DELETE') objects.delete(path);
    if (method === 'PATCH') objects.set(path, { ...existing, ...body });
    return answer(response, 200, method === 'DELETE' ? { id: existing.id, deleted: true } : objects.get(path));
  };

  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const [path] = request.url!.split('?') as [string];
      const method = request.method!;
      calls.push({ method, path, key: keyOf(request), body });
      const refused = /^re_(\d{3})$/.exec(keyOf(request))?.[1];
      if (keyOf(request) === 're_refused') {
        answer(response, 401, { statusCode: 401, name: 'invalid_api_key', message: 'API key is invalid' });
      } else if (refused) {
        const status = Number(refused);
        answer(response, status, { statusCode: status, name: 'refused', message: 'the double says no' });
      } else if (path === '/emails' && method === 'POST') {
        sendEmail(request, response, body);
      } else if (path === '/emails/batch' && method === 'POST') {
        sendBatch(request, response, body as unknown as Body[]);
      } else if (path.startsWith('/emails/')) {
        const found = accepted.find((mail) => path === `/emails/${mail.id}`);
        if (found) answer(response, 200, { object: 'email', id: found.id, last_event: 'delivered' });
        else notFound(response);
      } else {
        handleObject(method, `${keyOf(request)}${path}`, body, response);
      }
    });
  });
  return { ...(await listen(server)), accepted, calls, moods, hung };
}

function keyOf(request: IncomingMessage): string {
  return (request.headers.authorization ?? '').replace('Bearer ', '');
}

async function readBody(request: IncomingMessage): Promise<Body> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text === '' ? {} : (JSON.parse(text) as Body);
}

function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function notFound(response: ServerResponse): void {
  answer(response, 404, { statusCode: 404, name: 'not_found', message: 'Not found' });
}
