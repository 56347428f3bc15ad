import { describe, expect, it } from 'vitest';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp({ settings: { BSVC_PUBLIC_URL: 'https://api.example.com' } });

describe('security headers', () => {
  it('stand on every reply, errors included', async () => {
    for (const path of ['/api/health', '/api/data/x', '/nothing']) {
      const { headers } = await fetch(`${test.url}${path}`);
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
        'cross-origin-resource-policy': 'cross-origin',
        'referrer-policy': 'no-referrer',
        'strict-transport-security': 'max-age=31536000; includeSubDomains',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
      });
      expect(headers.has('x-powered-by')).toBe(false);
    }
  });

  it('do not promise HTTPS where clients come without', async () => {
    const plain = await useTestApp();
    expect((await fetch(`${plain.url}/api/health`)).headers.has('strict-transport-security')).toBe(false);
  });
});

describe('GET /api/health/ready', () => {
  it('is 200 until the process begins to stop, then 503; live stays 200', async () => {
    const ready = () => fetch(`${test.url}/api/health/ready`);
    expect(await (await ready()).json()).toEqual({ status: 'ok' });
    test.app.readiness.end();
    const stopping = await ready();
    expect({ status: stopping.status, body: await stopping.json() }).toEqual({
      status: 503,
      body: { status: 'stopping' },
    });
    expect((await fetch(`${test.url}/api/health/live`)).status).toBe(200);
  });
});

describe('X-Forwarded-For', () => {
  const advice = (lines: string[]): number => lines.filter((line) => line.includes('BSVC_TRUST_PROXY')).length;
  const pass = (url: string) => fetch(`${url}/api/health/live`, { headers: { 'x-forwarded-for': '203.0.113.9' } });

  it('is logged once when no proxy is trusted', async () => {
    const plain = await useTestApp();
    await fetch(`${plain.url}/api/health/live`);
    expect(advice(plain.logLines)).toBe(0);
    for (let request = 0; request < 3; request++) await pass(plain.url);
    expect(advice(plain.logLines)).toBe(1);
  });

  it('is not logged behind a trusted proxy', async () => {
    const behind = await useTestApp({ settings: { BSVC_TRUST_PROXY: '1' } });
    await pass(behind.url);
    expect(advice(behind.logLines)).toBe(0);
  });
});
