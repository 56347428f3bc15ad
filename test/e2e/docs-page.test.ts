import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, readRenderedPage } from '../helpers/chromium.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

let test: TestApp;

beforeAll(async () => {
  test = await openTestApp();
});
afterAll(() => test.close());

describe.skipIf(!CHROMIUM)('/api/docs in a browser', () => {
  it('runs its script under its own policy: search is offered, the named operation is open', async () => {
    const page = await readRenderedPage(`${test.url}/api/docs#aggregateDocuments`);
    expect(page).toMatch(/<form class="search" role="search">/);
    expect(page).toMatch(/<details class="operation" id="aggregateDocuments" open="">/);
    expect(page.match(/<details class="operation"[^>]* open="">/g)).toHaveLength(1);
  });
});
