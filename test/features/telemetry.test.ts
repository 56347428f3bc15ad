import { beforeEach, describe, expect, it } from 'vitest';
import { openTelemetry } from '../../src/platform/observe/telemetry.js';
import { drainJobs } from '../../src/worker.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../helpers/build-webhook.js';
import { openTestApp } from '../helpers/open-test-app.js';
import { registerTelemetryDouble, type SeenSpan } from '../helpers/telemetry-double.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';
import { use, useTestApp } from '../helpers/use.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

const double = use(registerTelemetryDouble());
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_BCRYPT_COST: '4' };
const test = await useTestApp({ settings, telemetry: await openTelemetry() });
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, { name: 'notes' });
// What a request leaves to be done behind it, as the note that a key was used, is of its trace, too.
beforeEach(async () => {
  await test.app.backgroundTasks.idle();
  double.spans.splice(0);
});

const call = (path: string, method = 'GET', body?: unknown): Promise<Response> =>
  fetch(test.url + path, {
    method,
    headers: {
      'x-api-key': shop.secret,
      'content-type': 'application/json',
      traceparent: `00-${TRACE}-${CALLER}-01`,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
const named = (name: string): SeenSpan | undefined => double.spans.find((span) => span.name === name);

describe('with an SDK of OpenTelemetry', () => {
  it('a request is a span of its caller’s trace, named after its route', async () => {
    const reply = await call('/api/data/notes?title=secret');
    expect(named('GET /api/data/:collectionName')).toMatchObject({
      kind: 'SERVER',
      traceId: TRACE,
      parentId: CALLER,
      failed: false,
      attributes: {
        'http.request.method': 'GET',
        'http.route': '/api/data/:collectionName',
        'http.response.status_code': 200,
        'url.path': '/api/data/notes',
        'bsvc.request_id': reply.headers.get('x-request-id'),
      },
    });
  });

  it('begins a trace of its own for a request without one, or with a broken one', async () => {
    for (const traceparent of ['', '00-zz-01', `00-${'0'.repeat(500)}`]) {
      await fetch(`${test.url}/api/health/live`, { headers: { traceparent } });
    }
    const traces = new Set(double.spans.map(({ traceId }) => traceId));
    expect(traces.size).toBe(3);
    expect(traces.has(TRACE)).toBe(false);
  });

  it('commands of the database are spans within it, and nothing of the data is in them', async () => {
    await call('/api/data/notes', 'POST', { data: 'a canary of the data' });
    const request = named('POST /api/data/:collectionName')!;
    const insert = named('transform documents')!;
    expect(insert).toMatchObject({ kind: 'CLIENT', traceId: TRACE, parentId: request.spanId });
    expect(insert.attributes).toMatchObject({ 'db.operation.name': 'transform' });
    await call('/api/data/notes?data=a%20canary%20of%20the%20data');
    expect(named('find documents')).toMatchObject({ traceId: TRACE });
    expect(JSON.stringify(double.spans)).not.toContain('canary');
  });

  it('a command that fails tells how, not of what', async () => {
    const fields = [{ name: 'code', type: 'String' as const, unique: true }];
    await buildCollection(test.app, shop.project, { name: 'coded', fields });
    await call('/api/data/coded', 'POST', { code: 'canary' });
    double.spans.splice(0);
    expect((await call('/api/data/coded', 'POST', { code: 'canary' })).status).toBe(409);
    expect(named('transform documents')).toMatchObject({ failed: true, attributes: { 'error.type': '11000' } });
    expect(named('POST /api/data/:collectionName')).toMatchObject({ failed: false });
    expect(JSON.stringify(double.spans)).not.toContain('canary');
  });

  it('jobs, mail and webhooks are spans, and a receiver can continue the trace', async () => {
    const receiver = await openWebhookReceiver();
    await buildWebhook(test.app, shop.project, `${receiver.url}?token=canary`);
    await call('/api/data/notes', 'POST', { n: 1 });
    await settleWebhooks(test.app);
    const job = named('job webhooks.deliver')!;
    const post = double.spans.find(({ name, kind }) => name === 'POST' && kind === 'CLIENT')!;
    expect(job).toMatchObject({
      kind: 'CONSUMER',
      attributes: {
        'bsvc.job.name': 'webhooks.deliver',
        'bsvc.job.id': expect.stringMatching(/^[0-9a-f]{24}$/) as string,
        'bsvc.job.attempt': 1,
      },
    });
    expect(post).toMatchObject({ traceId: job.traceId, attributes: { 'server.address': '127.0.0.1' } });
    expect(receiver.received[0]!.headers.traceparent).toBe(`00-${post.traceId}-${post.spanId}-01`);
    await receiver.close();

    await call('/api/mail/send', 'POST', { to: 'ann@example.test', subject: 'canary', text: 'canary' });
    await drainJobs(test.app);
    expect(named('send mail')).toMatchObject({
      kind: 'CLIENT',
      parentId: named('job mail.deliver')!.spanId,
      attributes: { 'bsvc.mail.provider': 'outbox' },
    });
    expect(JSON.stringify(double.spans)).not.toContain('canary');
  });

  it('hands over what is left when the process ends', async () => {
    const other = await openTestApp({ telemetry: await openTelemetry() });
    const before = double.flushed;
    await other.close();
    expect(double.flushed).toBe(before + 1);
  });
});
