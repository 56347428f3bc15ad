import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { openOutbound, type Outbound, type OutboundOptions } from '../../src/platform/network/outbound.js';
import { isPublicAddress } from '../../src/platform/network/public-address.js';

let requests = 0;
let open: Outbound[] = [];

const server = createServer((request, response) => {
  requests++;
  if (request.url === '/large') return void response.end(Buffer.alloc(2 * 1024 * 1024));
  if (request.url === '/redirect') response.writeHead(302, { location: `http://127.0.0.1:${port}/inside` });
  response.end('inside');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const port = (server.address() as AddressInfo).port;

afterAll(() => new Promise((resolve) => server.close(resolve)));

afterEach(async () => {
  await Promise.all(open.map((outbound) => outbound.close()));
  open = [];
});

function openWay(options: Partial<OutboundOptions> = {}): Outbound {
  const outbound = openOutbound({ allowPrivate: false, ...options });
  open.push(outbound);
  return outbound;
}

const post = (outbound: Outbound, url: string) => outbound.send({ url, method: 'POST', headers: {}, body: '{}' });

const INSIDE = [
  ['loopback', '127.0.0.1'],
  ['loopback, another one', '127.8.9.10'],
  ['loopback by name', 'localhost'],
  ['loopback by name with a dot', 'localhost.'],
  ['loopback in decimal', '2130706433'],
  ['loopback in hexadecimal', '0x7f000001'],
  ['loopback in parts', '0x7f.1'],
  ['loopback in octal', '0177.0.0.1'],
  ['loopback shortened', '127.1'],
  ['loopback in full-width digits', '１２７.０.０.１'],
  ['unspecified', '0.0.0.0'],
  ['private 10/8', '10.0.0.1'],
  ['private 172.16/12', '172.16.5.5'],
  ['private 192.168/16', '192.168.1.1'],
  ['shared (CGNAT)', '100.64.0.1'],
  ['link-local', '169.254.1.1'],
  ['cloud metadata', '169.254.169.254'],
  ['cloud metadata in decimal', '2852039166'],
  ['benchmarking', '198.18.0.1'],
  ['multicast', '224.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['reserved', '240.0.0.1'],
  ['the host service of Azure', '168.63.129.16'],
  ['the host service of Azure, mapped', '[::ffff:a83f:8110]'],
  ['the metadata of Amazon, Google and others', '169.254.169.254'],
  ['the metadata of Alibaba', '100.100.100.200'],
  ['the metadata of Oracle', '192.0.0.192'],
  ['the metadata of Google over IPv6', '[fd20:ce::254]'],
  ['the service networks of IBM', '161.26.0.10'],
  ['the service networks of IBM, higher', '166.11.255.254'],
  ['IPv6 loopback', '[::1]'],
  ['IPv6 unspecified', '[::]'],
  ['IPv6 link-local', '[fe80::1]'],
  ['IPv6 unique local', '[fd00:ec2::254]'],
  ['IPv6 site-local', '[fec0::1]'],
  ['IPv6 multicast', '[ff02::1]'],
  ['IPv6-mapped loopback', '[::ffff:127.0.0.1]'],
  ['IPv6-mapped private', '[::ffff:a00:1]'],
  ['IPv6-compatible loopback', '[::127.0.0.1]'],
  ['IPv6-translated loopback', '[::ffff:0:127.0.0.1]'],
  ['NAT64 of loopback', '[64:ff9b::127.0.0.1]'],
  ['local NAT64', '[64:ff9b:1::1]'],
  ['6to4 of loopback', '[2002:7f00:1::]'],
  ['Teredo', '[2001::1]'],
  ['ISATAP of loopback', '[2a00:1450::5efe:7f00:1]'],
] as const;

describe('an address inside', () => {
  it.each(INSIDE)('%s (%s) is refused when it is checked and when it is sent to', async (_what, host) => {
    const outbound = openWay();
    const before = requests;
    const url = `http://${host}:${port}/`;
    await expect(outbound.check(new URL(url))).rejects.toThrow('is not a public address');
    await expect(post(outbound, url)).rejects.toMatchObject({ failure: 'blocked' });
    expect(requests).toBe(before);
  });

  it('is refused however deep the name that means loopback', async () => {
    await expect(openWay().check(new URL('https://a.b.localhost/'))).rejects.toThrow('is not a public address');
  });

  it.each([
    'metadata.google.internal',
    'printer.local',
    '127.0.0.1.nip.io',
    '10-1-2-3.sslip.io',
    'a.localtest.me',
    'nas.lan',
  ])('is refused by a name that can only lead inside, %s, whether or not it resolves now', async (name) => {
    const outbound = openWay({ resolve: async () => ['203.0.114.7'] });
    await expect(outbound.check(new URL(`https://${name}/`))).rejects.toThrow('is not a public address');
  });

  it('is refused when only one of a name’s addresses is inside', async () => {
    const outbound = openWay({ resolve: async () => ['203.0.114.7', '10.0.0.1'] });
    await expect(outbound.check(new URL('https://mixed.test/'))).rejects.toThrow('mixed.test is not a public address');
    await expect(post(outbound, `http://mixed.test:${port}/`)).rejects.toMatchObject({ failure: 'blocked' });
  });

  it('is refused at the attempt when a name that was public leads inside by then', async () => {
    const answers = [['203.0.114.7'], ['127.0.0.1']];
    const asked: string[] = [];
    const outbound = openWay({
      resolve: async (host) => {
        asked.push(host);
        return answers.shift() ?? ['127.0.0.1'];
      },
    });
    const before = requests;
    await outbound.check(new URL(`http://rebinding.test:${port}/`));
    await expect(post(outbound, `http://rebinding.test:${port}/`)).rejects.toMatchObject({ failure: 'blocked' });
    expect(asked).toEqual(['rebinding.test', 'rebinding.test']);
    expect(requests).toBe(before);
  });

  it('is connected to only where private targets are allowed, and redirects are answers', async () => {
    const outbound = openWay({ allowPrivate: true });
    await outbound.check(new URL(`http://127.0.0.1:${port}/`));
    const before = requests;
    const reply = await post(outbound, `http://127.0.0.1:${port}/redirect`);
    expect(reply.status).toBe(302);
    expect(requests).toBe(before + 1);
  });
});

describe('a public address', () => {
  it.each(['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '::ffff:8.8.8.8'])('%s passes', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it('is looked up once for a connection, so that what was checked is what is connected to', async () => {
    const asked: string[] = [];
    const outbound = openWay({
      allowPrivate: true,
      resolve: async (host) => {
        asked.push(host);
        return ['127.0.0.1'];
      },
    });
    expect(await post(outbound, `http://pinned.test:${port}/`)).toMatchObject({
      status: 200,
      body: Buffer.from('inside'),
    });
    expect(asked).toEqual(['pinned.test']);
  });

  it('that cannot be resolved passes the check, and fails at the attempt', async () => {
    const outbound = openWay({
      resolve: () => Promise.reject(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' })),
    });
    await outbound.check(new URL('https://later.test/'));
    await expect(post(outbound, 'http://later.test/')).rejects.toMatchObject({ failure: 'dns' });
  });
});

describe('fetch', () => {
  it.each(INSIDE)('refuses %s (%s)', async (_what, host) => {
    const before = requests;
    await expect(openWay().fetch(`http://${host}:${port}/`)).rejects.toThrow();
    expect(requests).toBe(before);
  });

  it('follows no redirect and fails with an answer of more than a mebibyte', async () => {
    const { fetch } = openWay({ allowPrivate: true });
    const moved = await fetch(`http://127.0.0.1:${port}/redirect`, { redirect: 'follow' });
    expect([moved.status, await moved.text()]).toEqual([302, 'inside']);
    const large = await fetch(`http://127.0.0.1:${port}/large`);
    await expect(large.text()).rejects.toThrow();
  });
});
