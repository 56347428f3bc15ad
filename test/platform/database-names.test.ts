import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';

let home: ReturnType<typeof openCliHome>;
beforeEach(() => {
  home = openCliHome();
});
afterEach(() => home.remove());

const listed = async (env: Record<string, string> = {}): Promise<string> =>
  (await home.bsvc(['project', 'list', '--json'], { env })).stdout;

describe('the database of an embedded store', () => {
  it('is the same whatever BSVC_MONGODB_DB says', async () => {
    await home.bsvc(['project', 'create', 'shop']);
    expect(await listed({ BSVC_MONGODB_DB: 'elsewhere' })).toContain('"shop"');
    await home.bsvc(['project', 'create', 'second'], { env: { BSVC_MONGODB_DB: 'elsewhere' } });
    expect(await listed()).toContain('"second"');
  });
});
