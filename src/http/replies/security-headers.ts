import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import helmet from 'helmet';
import type { Preparation } from '../answer-requests.js';
import { addHeaders } from './reply.js';

/**
 * Headers that keep a browser from doing with a reply what an API's reply is not for. Computed once; a route that
 * serves something else (files, pages) sets its own over them. HTTPS is made binding only where clients come by it.
 */
export function securityHeaders(publicUrl: string | null): Preparation {
  const headers = listHeaders(publicUrl?.startsWith('https:') === true);
  return (ctx) => addHeaders(ctx, headers);
}

/** A dummy response that records the headers that are set, in order, as lines. */
class HeaderRecorder extends ServerResponse {
  lines = '';

  override setHeader(name: string, value: number | string | readonly string[]): this {
    this.lines += `${name}: ${String(value)}\r\n`;
    return this;
  }
}

function listHeaders(https: boolean): string {
  const set = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    frameguard: { action: 'deny' },
    // Pages of other origins are what a backend for applications is for; which ones is settled by CORS.
    crossOriginResourcePolicy: { policy: 'cross-origin' },
    strictTransportSecurity: https && { maxAge: 31_536_000 },
    // Of documents and old browsers only.
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    dnsPrefetchControl: false,
    ieNoOpen: false,
    permittedCrossDomainPolicies: false,
    xssFilter: false,
    hidePoweredBy: false,
  });
  const request = new IncomingMessage(new Socket());
  const recorder = new HeaderRecorder(request);
  set(request, recorder, () => undefined);
  return recorder.lines;
}
