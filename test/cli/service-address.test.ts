import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
await home.bsvc(['project', 'create', 'shop']);
await home.bsvc(['operator', 'add', '--email', 'ann@example.com', '--password-stdin'], { stdin: 'correct horse\n' });

describe('the address of the service that commands name', () => {
  it.each([
    [{}, 'http://localhost:4000/'],
    [{ BSVC_HOST: '0.0.0.0', BSVC_PORT: '4100' }, 'http://localhost:4100/'],
    [{ BSVC_HOST: '::' }, 'http://localhost:4000/'],
    [{ BSVC_HOST: '10.1.2.3' }, 'http://10.1.2.3:4000/'],
    [{ BSVC_HOST: 'fd00::5' }, 'http://[fd00::5]:4000/'],
    [{ BSVC_PUBLIC_URL: 'https://api.shop.example/base' }, 'https://api.shop.example/base/'],
  ])('with %j begins with %s', async (env, begin) => {
    const name = `c${begin.replace(/\W/g, '')}${Object.keys(env).length}${'BSVC_HOST' in env ? env.BSVC_HOST.length : ''}`;
    const added = await home.bsvc(['collection', 'add', name, '--project', 'shop', '--flexible'], { env });
    expect(added.stdout).toContain(` ${begin}api/data/${name}`);
    const link = await home.bsvc(['console', '--quiet', '--no-open'], { env });
    expect(link.stdout).toContain(`${begin}console/#/enter/`);
  });

  it.each(['ftp://x', 'http://', 'x', 'https://x.example/?a=b', 'https://x.example/#here'])(
    'is nothing that no path can be put behind: %s',
    async (url) => {
      const { code, stderr } = await home.bsvc(['console', '--no-open', '--url', url]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('must be an http(s) address') as string]);
    },
  );

  it('is given with a warning where the console is off', async () => {
    const { code, stderr } = await home.bsvc(['console', '--no-open'], { env: { BSVC_CONSOLE: 'off' } });
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^Warning: .*BSVC_CONSOLE=off/) as string]);
  });

  it('is put together in one place', () => {
    const commands = join(import.meta.dirname, '..', '..', 'cli', 'commands');
    const own = readdirSync(commands, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .filter((name) => readFileSync(join(commands, name), 'utf8').includes('http://${'));
    expect(own).toEqual([]);
  });
});
