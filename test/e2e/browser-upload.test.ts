import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyBucketCors } from '../../src/features/files/bucket/project-bucket.js';
import { requireProject, setBucket, updateProject } from '../world/projects.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { CHROMIUM, openInBrowser } from '../helpers/chromium.js';
import { eventually } from '../helpers/eventually.js';
import { listen, type Listening } from '../helpers/listen.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { openS3Double, type S3Double } from '../helpers/s3-double.js';
import { openStorageClient } from '../helpers/storage-client.js';

const DEADLINE_MS = 45_000;

interface Report {
  put?: number;
  url?: string;
  width?: number;
  frame?: string;
  error?: string;
}

let test: TestApp;
let double: S3Double;
let site: Listening;
let reported: Report | null = null;
let script = '';

beforeAll(async () => {
  test = await openTestApp({ settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  double = await openS3Double();
  // The application's own web server: another origin than the service and the bucket.
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        reported = JSON.parse(Buffer.concat(chunks).toString()) as Report;
        response.end();
      });
      return;
    }
    const pages: Record<string, string> = {
      '/': `<!doctype html><script type="module">${script}</script>`,
      '/greets': GREETS,
    };
    response.setHeader('content-type', 'text/html');
    response.end(pages[request.url!] ?? '');
  });
  site = await listen(server);
});
afterAll(async () => {
  await site.close();
  await test.close();
  await double.close();
});

/** Html whose script tells the page around it that it runs. */
const GREETS = '<script>parent.postMessage("hello", "*")</script>';

/** What a page of the application does: draw a picture, ask for an address, PUT, confirm, show. */
const pageScript = (key: string, htmlUrl: string | null): string => `
const report = (found) => fetch('/report', { method: 'POST', body: JSON.stringify(found) });
try {
  const canvas = Object.assign(document.createElement('canvas'), { width: 37, height: 11 });
  canvas.getContext('2d').fillRect(0, 0, 20, 10);
  const picture = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
  const call = async (path, body) => (await fetch('${test.url}/api/storage/' + path, {
    method: 'POST', headers: { 'x-api-key': '${key}', 'content-type': 'application/json' }, body: JSON.stringify(body),
  })).json();
  const { signedUrl, filePath } = await call('upload-request', { filename: 'drawn.png', contentType: 'image/png', size: picture.size });
  const put = await fetch(signedUrl, { method: 'PUT', headers: { 'content-type': 'image/png' }, body: picture });
  const { url } = await call('upload-confirm', { filePath, size: picture.size });
  const image = new Image();
  image.src = url;
  await image.decode();
  let frame = 'not tried';
  const htmlUrl = ${JSON.stringify(htmlUrl)};
  if (htmlUrl) {
    const open = (src) => document.body.appendChild(Object.assign(document.createElement('iframe'), { src })).contentWindow;
    const greeted = (by) => new Promise((resolve) => addEventListener('message', ({ source }) => source === by && resolve()));
    frame = 'silent';
    greeted(open(htmlUrl)).then(() => (frame = 'its script ran'));
    await fetch(htmlUrl, { mode: 'no-cors' });
    // The same html from the site itself, begun later, is heard.
    await greeted(open('/greets'));
  }
  await report({ put: put.status, url, width: image.naturalWidth, frame });
} catch (error) {
  await report({ error: String(error) });
}`;

async function visit(key: string, htmlUrl: string | null): Promise<Report> {
  script = pageScript(key, htmlUrl);
  reported = null;
  const browser = await openInBrowser(site.url);
  try {
    return await eventually('the page reports', () => reported, DEADLINE_MS);
  } finally {
    await browser.close();
  }
}

async function buildOwner(): Promise<TestProject> {
  const owner = await buildProject(test.app);
  const allowedDomains = [site.url];
  await updateProject(test.app, owner.project.name, { publishableUploads: true, allowedDomains });
  return owner;
}

describe.skipIf(!CHROMIUM)('a page in a browser', () => {
  it('uploads to the service by a signed address and shows the picture from its public address; uploaded html stays silent', async () => {
    const { publishable, secret } = await buildOwner();
    const evil = await openStorageClient(test, secret).upload(GREETS, 'page.html', 'text/html');
    const found = await visit(publishable, evil.body.url);
    expect(found).toEqual({
      put: 200,
      url: expect.stringContaining(`${test.url}/files/`) as string,
      width: 37,
      frame: 'silent',
    });
  });

  it('uploads to the project’s bucket, which is another origin again, once its CORS rules allow it', async () => {
    const { publishable, project } = await buildOwner();
    await setBucket(test.app, project, double.access, true);
    expect((await visit(publishable, null)).error).toMatch(/TypeError/);
    await applyBucketCors(test.app, await requireProject(test.app, project.name), [site.url]);
    const found = await visit(publishable, null);
    expect(found).toEqual({
      put: 200,
      url: expect.stringContaining(double.access.publicUrl!) as string,
      width: 37,
      frame: 'not tried',
    });
  });
});
