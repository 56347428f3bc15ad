import { describe, expect, it } from 'vitest';
import { clientAddress, clientNetwork } from '../../src/http/requests/client-address.js';

describe('the address of a client', () => {
  it.each([
    ['without a trusted proxy is the connection’s', '10.0.0.1', '1.1.1.1', 0, '10.0.0.1'],
    ['behind one proxy is the last entry, whatever stands before it', '10.0.0.1', '6.6.6.6, 1.1.1.1', 1, '1.1.1.1'],
    ['behind two proxies is the last but one', '10.0.0.1', '6.6.6.6, 1.1.1.1, 10.0.0.2', 2, '1.1.1.1'],
    ['is the only entry when an outer proxy was passed by', '10.0.0.1', '1.1.1.1', 2, '1.1.1.1'],
    ['is the connection’s without the header', '10.0.0.1', '', 1, '10.0.0.1'],
    ['is the connection’s when the entry is no address', '10.0.0.1', '1.1.1.1, unknown', 1, '10.0.0.1'],
    ['is the connection’s when the entry is in octal', '10.0.0.1', '01.01.01.01', 1, '10.0.0.1'],
    ['has no port', '10.0.0.1', '1.1.1.1:4711', 1, '1.1.1.1'],
    ['has no brackets', '10.0.0.1', '[2001:db8::1]:4711', 1, '2001:db8::1'],
    ['is IPv4 when it is written as IPv6', '::ffff:192.0.2.7', '', 0, '192.0.2.7'],
    ['is IPv4 when a proxy wrote it as IPv6', '10.0.0.1', '::ffff:192.0.2.7', 1, '192.0.2.7'],
  ])('%s', (_title, remote, forwardedFor, hops, address) => {
    expect(clientAddress(remote, forwardedFor, hops)).toBe(address);
  });
});

describe('the network that a client is counted as', () => {
  it('is the address itself for IPv4', () => {
    expect(clientNetwork('192.0.2.7')).toBe('192.0.2.7');
  });

  it('is the /64 for IPv6, in whatever spelling', () => {
    expect(clientNetwork('2001:db8:0:1::1')).toBe('2001:db8:0:1::/64');
    expect(clientNetwork('2001:0DB8:0000:0001:ffff:ffff:ffff:ffff')).toBe('2001:db8:0:1::/64');
    expect(clientNetwork('2001:db8:0:2::1')).not.toBe(clientNetwork('2001:db8:0:1::1'));
  });

  it('is the IPv4 address inside an IPv6 one', () => {
    expect(clientNetwork('::ffff:192.0.2.7')).toBe('192.0.2.7');
  });
});
