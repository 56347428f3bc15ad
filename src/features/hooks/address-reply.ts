import { invalid } from '../../errors.js';
import { HandlerFailure } from './call-handler.js';

/** What an address answers, checked. */
export interface AddressReply {
  status: number;
  headers: [name: string, value: string][];
  body: Buffer;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_HEADERS = 30;
const MAX_VALUE_CHARACTERS = 2_048;
/** Visible Latin letters: neither a line's end nor anything else that begins another header. */
const VALUE = /^[\x20-\x7e\xa0-\xff]*$/;
const ALLOWED = new Set([
  ...['cache-control', 'content-disposition', 'content-language', 'content-type', 'etag', 'expires'],
  ...['last-modified', 'location', 'retry-after'],
]);
/** Headers of its own, but none that browsers, proxies or the service's own clients act upon. */
const OWN =
  /^x-(?!accel-|api-key|content-|dns-|download-|forwarded|frame-|permitted-|powered|refresh-|request-id|ua-|xss-)[a-z0-9-]{1,60}$/;
/**
 * The address is at the origin of the console and of the public folder, whose policies load scripts and styles from
 * there; any other type does no harm there, sandboxed and never sniffed.
 */
const RUNS_ELSEWHERE = /(java|ecma|j|live)script|css|wasm/i;

/**
 * What a child says that a handler has returned. It may be anything: throws HandlerFailure for what may not be sent,
 * 400 INVALID_JSON where the handler wanted JSON of the request.
 */
export function readReply(answer: unknown): AddressReply {
  const { status, headers, body, invalidJson } = (answer ?? {}) as Record<string, unknown>;
  if (typeof invalidJson === 'string') throw invalid('INVALID_JSON', invalidJson.slice(0, 200));
  if (!Number.isInteger(status) || (status as number) < 200 || (status as number) > 599) {
    throw new HandlerFailure('The status of an answer is 200 to 599.');
  }
  if (!Array.isArray(headers) || headers.length > MAX_HEADERS) {
    throw new HandlerFailure(`An answer has at most ${MAX_HEADERS} headers.`);
  }
  const bytes = Buffer.from(typeof body === 'string' ? body : '', 'base64');
  if (bytes.length > MAX_BODY_BYTES) throw new HandlerFailure(`An answer has at most ${MAX_BODY_BYTES / 1024} KiB.`);
  return { status: status as number, headers: headers.map(readHeader), body: bytes };
}

function readHeader(header: unknown): [string, string] {
  const [given, value] = Array.isArray(header) ? (header as unknown[]) : [];
  const name = String(given).toLowerCase();
  if (!ALLOWED.has(name) && !OWN.test(name)) {
    throw new HandlerFailure(`An address may not send the header ${JSON.stringify(name.slice(0, 64))}.`);
  }
  if (typeof value !== 'string' || value.length > MAX_VALUE_CHARACTERS || !VALUE.test(value)) {
    throw new HandlerFailure(`The value of the header ${name} cannot be sent.`);
  }
  if (name === 'content-type' && RUNS_ELSEWHERE.test(value)) {
    throw new HandlerFailure(
      `An address serves no ${value.slice(0, 64)}: scripts and styles belong to the public folder.`,
    );
  }
  return [name, value];
}
