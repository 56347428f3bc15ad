import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Agents } from '../network/public-agents.js';

// Sends from here the requests of a page in a browser to a signed address: whether uploads from browsers work is best
// known by trying.

export interface PreflightAnswer {
  /** True if a browser would go on to send the PUT. */
  allowed: boolean;
  status: number;
}

export interface Connection {
  agents: Agents;
  /** Time limit of the whole exchange. */
  limitMs: number;
}

/**
 * Asks `url` what a browser page of `origin` asks before a PUT with a content type. Throws when the address cannot be
 * reached in time.
 */
export async function sendPreflight(url: string, origin: string, connection: Connection): Promise<PreflightAnswer> {
  const response = await send(connection, 'OPTIONS', url, {
    origin,
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'content-type',
  });
  const status = response.statusCode ?? 0;
  const header = (name: string): string[] => (response.headers[name]?.toString() ?? '').split(/\s*,\s*/);
  const allowed =
    status >= 200 &&
    status < 300 &&
    header('access-control-allow-origin').some((entry) => entry === '*' || entry === origin) &&
    header('access-control-allow-methods').includes('PUT') &&
    header('access-control-allow-headers').some((entry) => entry === '*' || entry.toLowerCase() === 'content-type');
  return { allowed, status };
}

/** Sends `body` to a signed address and answers the status. */
export async function sendPut(url: string, type: string, body: Buffer, connection: Connection): Promise<number> {
  const headers = { 'content-type': type, 'content-length': body.length };
  return (await send(connection, 'PUT', url, headers, body)).statusCode ?? 0;
}

/** Asks for an address without any right and answers the status. */
export async function sendGet(url: string, connection: Connection): Promise<number> {
  return (await send(connection, 'GET', url, {})).statusCode ?? 0;
}

function send(
  { agents, limitMs }: Connection,
  method: string,
  url: string,
  headers: OutgoingHttpHeaders,
  body?: Buffer,
): Promise<IncomingMessage> {
  const target = new URL(url);
  const secure = target.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const request = (secure ? httpsRequest : httpRequest)(target, {
      method,
      agent: secure ? agents.httpsAgent : agents.httpAgent,
      signal: AbortSignal.timeout(limitMs),
      headers,
    });
    request.once('error', reject);
    request.once('response', (response) => {
      response.resume();
      resolve(response);
    });
    request.end(body);
  });
}
