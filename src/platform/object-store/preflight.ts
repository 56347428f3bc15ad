import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Agents } from '../public-agents.js';

export interface PreflightAnswer {
  /** Whether a browser would go on to send the PUT. */
  allowed: boolean;
  status: number;
}

/** Asks `url` what a browser page of `origin` asks before a PUT with a content type. Throws when the address cannot be reached in time. */
export function sendPreflight(url: string, origin: string, agents: Agents, limitMs: number): Promise<PreflightAnswer> {
  const target = new URL(url);
  const secure = target.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const request = (secure ? httpsRequest : httpRequest)(target, {
      method: 'OPTIONS',
      agent: secure ? agents.httpsAgent : agents.httpAgent,
      signal: AbortSignal.timeout(limitMs),
      headers: {
        origin,
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'content-type',
      },
    });
    request.once('error', reject);
    request.once('response', (response) => {
      response.resume();
      const status = response.statusCode ?? 0;
      const header = (name: string): string[] => (response.headers[name]?.toString() ?? '').split(/\s*,\s*/);
      const allowed =
        status >= 200 &&
        status < 300 &&
        header('access-control-allow-origin').some((entry) => entry === '*' || entry === origin) &&
        header('access-control-allow-methods').includes('PUT') &&
        header('access-control-allow-headers').some((entry) => entry === '*' || entry.toLowerCase() === 'content-type');
      resolve({ allowed, status });
    });
    request.end();
  });
}
