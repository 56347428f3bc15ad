import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());

const STRONG = 'q8Zk1vYfC0c9hVJp6Yw3mJ0hX2nJtF5rQ4uT7bW1xKs=';

describe.each([[['serve', '--port', '0', '--no-worker']], [['worker']]])('bsvc %j', (words) => {
  it.each([
    ['BSVC_SECRET_KEY', 'changeme', 'examples'],
    ['BSVC_SECRET_KEY', 'short', 'shorter than 16'],
    ['BSVC_SECRET_KEY', 'ababababababababab', 'repeats'],
    ['BSVC_SECRET_KEY', `supersecretkey,${STRONG}`, 'examples'],
    ['BSVC_ADMIN_TOKEN', 'admin', 'examples'],
    ['BSVC_ADMIN_TOKEN', 'Xy7!pQ', 'shorter than 12'],
  ])('refuses %s=%s with exit 2 and says how to make a better one', async (name, value, why) => {
    const { code, stderr } = await home.bsvc(words, { env: { [name]: value } });
    expect(code).toBe(2);
    expect(stderr).toContain(name);
    expect(stderr).toContain(why);
    expect(stderr).toContain('openssl rand -base64 32');
  });

  it('tells of both at once', async () => {
    const env = { BSVC_SECRET_KEY: 'changeme', BSVC_ADMIN_TOKEN: 'changeme' };
    const { code, stderr } = await home.bsvc(words, { env });
    expect(code).toBe(2);
    expect(stderr.match(/found in examples/g)).toHaveLength(2);
  });

  it('runs when an older key is weak, so that it can be rotated away', async () => {
    const stop = new AbortController();
    stop.abort('SIGTERM');
    const env = { BSVC_SECRET_KEY: `${STRONG},changeme` };
    expect((await home.bsvc(words, { env, stop: stop.signal })).code).toBe(0);
  });
});

describe('other commands', () => {
  it('do not ask, so that a weak key can be replaced', async () => {
    const { code } = await home.bsvc(['project', 'create', 'shop'], {
      env: { BSVC_SECRET_KEY: 'changeme', BSVC_DATA_DIR: join(home.dir, 'weak') },
    });
    expect(code).toBe(0);
  });
});
