import { isIPv4 } from 'node:net';
import type { Config } from '../../src/config/config.js';
import { passed, type CheckResult } from './check.js';

/**
 * Looks whether operators sign in at the console over a network without TLS. A warning only: something in front may
 * end TLS without telling. No check where the console is off.
 */
export function checkConsole({ console, host, publicUrl }: Config): CheckResult[] {
  if (!console) return [];
  if (publicUrl?.startsWith('https:')) return [passed('console', `${publicUrl}/console, by https`)];
  if (isLoopback(host)) return [passed('console', 'for this machine alone')];
  return [
    {
      ...passed('console', `listens on ${host}, and no https address is known`),
      hint: 'Passwords of operators cross the network in the clear: set BSVC_PUBLIC_URL to the https address of the proxy in front, or BSVC_CONSOLE=off.',
    },
  ];
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
