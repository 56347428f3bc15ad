import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const TOKEN = 'admin-token-for-metrics';
const test = await useTestApp({ settings: { BSVC_ADMIN_TOKEN: TOKEN } });

const scrape = (token?: string): Promise<Response> =>
  fetch(`${test.url}/metrics`, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });
const text = async (): Promise<string> => (await scrape(TOKEN)).text();

describe('GET /metrics', () => {
  it('needs the admin token', async () => {
    expect((await scrape()).status).toBe(401);
    expect((await scrape('guess')).status).toBe(401);
    const reply = await scrape(TOKEN);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  });

  it('is what linters of metrics accept', async () => {
    const shown = await text();
    const types = [...shown.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => ({ name: name!, type: type! }));
    expect(types.length).toBeGreaterThan(20);
    // A counter is a total, and nothing else is (https://prometheus.io/docs/practices/naming).
    const misnamed = types.filter(({ name, type }) => name.endsWith('_total') !== (type === 'counter'));
    expect(misnamed).toEqual([]);
    if (spawnSync('promtool', ['--version']).status !== 0) return;
    expect(spawnSync('promtool', ['check', 'metrics'], { input: shown, encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    });
  });

  it('is 404 where no admin token is set', async () => {
    const other = await useTestApp();
    expect((await fetch(`${other.url}/metrics`)).status).toBe(404);
  });

  it('counts requests and their time by route, method and status', async () => {
    const { project, secret } = await buildProject(test.app);
    await buildCollection(test.app, project, { name: 'things' });
    for (let use = 0; use < 3; use++)
      await fetch(`${test.url}/api/data/things?n=${use}`, { headers: { 'x-api-key': secret } });
    const name = 'bsvc_http_request_duration_seconds';
    const labels = 'method="GET",route="/api/data/:collectionName",status="200"';
    expect(await text()).toContain(`${name}_count{${labels}} 3\n`);
    expect(await text()).toContain(`${name}_bucket{${labels},le="+Inf"} 3\n`);
  });

  it('has no more series than routes, whatever paths and methods clients invent', async () => {
    const count = async (): Promise<number> =>
      (await text()).split('\n').filter((line) => line.startsWith('bsvc_http')).length;
    await fetch(`${test.url}/api/a`, { method: 'PURGE' });
    await fetch(`${test.url}/api/a`);
    // Requests are counted when they have ended, scrapes too: the first one below sees the last of the others.
    await count();
    const before = await count();
    for (let at = 0; at < 20; at++) {
      await fetch(`${test.url}/api/secret-path-${at}`);
      await fetch(`${test.url}/api/a`, { method: `M-${at}` }).catch(() => undefined);
    }
    expect(await count()).toBe(before);
    expect(await text()).not.toContain('secret-path');
  });

  it('shows outcomes, waiting jobs, requests under way and the process', async () => {
    test.app.metrics.event('mails', 'sent');
    test.app.metrics.event('webhook_attempts', 'delivered');
    const metrics = await text();
    expect(metrics).toContain('bsvc_mails_total{outcome="sent"} 1\n');
    expect(metrics).toContain('bsvc_webhook_attempts_total{outcome="delivered"} 1\n');
    expect(metrics).toMatch(/bsvc_jobs\{state="queued"\} \d+\n/);
    expect(metrics).toContain('bsvc_http_requests_in_flight 0\n');
    expect(metrics).toContain('process_resident_memory_bytes');
    if (test.app.db.kind === 'embedded') expect(metrics).toMatch(/bsvc_database\{measure="fileBytes"\} [1-9]/);
  });
});
