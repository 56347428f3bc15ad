import type { Context } from 'koa';
import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { admitsOrigin } from '../../../src/features/access/require-key.js';
import { isOwnName, isOwnOrigin, ownAddress } from '../../../src/features/access/own-origin.js';
import {
  preconditionsOf,
  boundValuesOf,
  boundValuesOfDocument,
  placeholderDocument,
  valuesAt,
} from '../../../src/features/access/rules/bound-values.js';
import { formatTokenId, parseTokenId } from '../../../src/features/access/caller.js';

describe('an allowlist', () => {
  it.each([
    [['*'], 'https://any.example', true],
    [['*'], 'null', true],
    [[], 'https://app.example', false],
    [['app.example'], 'https://app.example', true],
    [['app.example'], 'http://app.example:8080', true],
    [['app.example'], 'https://app.example.evil', false],
    [['app.example'], 'https://www.app.example', false],
    [['app.example'], 'app.example', false],
    [['app.example:443'], 'https://app.example', true],
    [['app.example:80'], 'http://app.example', true],
    [['app.example:443'], 'http://app.example', false],
    [['app.example:8080'], 'https://app.example:8080', true],
    [['app.example:8080'], 'https://app.example', false],
    [['https://app.example'], 'https://APP.example', true],
    [['https://app.example'], 'http://app.example', false],
    [['https://app.example'], 'https://app.example:8443', false],
    [['*.app.example'], 'https://www.app.example', true],
    [['*.app.example'], 'https://a.b.app.example', true],
    [['*.app.example'], 'https://app.example', false],
    [['*.app.example'], 'https://evilapp.example', false],
    [['*.app.example:8080'], 'http://www.app.example:8080', true],
    [['*.app.example:8080'], 'http://www.app.example', false],
    [['other.example', 'app.example'], 'https://app.example', true],
  ])('of %j for %s: %s', (allowed, origin, admitted) => {
    expect(admitsOrigin(allowed, origin)).toBe(admitted);
  });
});

describe('the service’s own origin', () => {
  const app = (publicUrl: string | null) => ({ config: { publicUrl } }) as Parameters<typeof isOwnOrigin>[0];
  const to = (host: string, protocol = 'http') => ({ host, hostname: host.replace(/:\d+$/, ''), protocol }) as Context;

  it.each([
    [null, 'localhost:8080', 'http://localhost:8080', true],
    // TLS may end before the service.
    [null, 'localhost:8080', 'https://localhost:8080', true],
    [null, 'localhost:8080', 'http://localhost:9090', false],
    [null, '127.0.0.1:8080', 'http://127.0.0.1:8080', true],
    [null, '[::1]:8080', 'http://[::1]:8080', true],
    [null, 'box.lan', 'http://box.lan', true],
    // Whoever owns a name may point it here.
    [null, 'evil.example', 'http://evil.example', false],
    ['https://api.example/below', 'evil.example', 'https://api.example', true],
    ['https://api.example', 'api.internal', 'http://api.internal', true],
    ['https://api.example', 'api.internal', 'http://api.example', false],
    [null, 'localhost', 'null', false],
  ])('with the public address %s, asked at %s, by %s: %s', (publicUrl, host, origin, own) => {
    expect(isOwnOrigin(app(publicUrl), to(host), origin)).toBe(own);
  });

  it('is said to clients as the public address, else as they have asked', () => {
    expect(ownAddress(app('https://api.example'), to('localhost:8080'))).toBe('https://api.example');
    expect(ownAddress(app(null), to('localhost:8080', 'https'))).toBe('https://localhost:8080');
  });

  it.each([
    ['localhost', true],
    ['box', true],
    ['printer.local', true],
    ['a.home.arpa', true],
    ['api.internal', true],
    ['10.0.0.1', true],
    ['[fe80::1]', true],
    ['local.example', false],
    ['lan', true],
    ['.lan', false],
    ['evil.lan.example', false],
    ['a:b', false],
  ])('by the name %s is its own: %s', (name, own) => {
    expect(isOwnName(name)).toBe(own);
  });
});

describe('the id of an access token', () => {
  const session = '0123abcd-0000-4000-8000-0123456789ab';

  it('holds session and moment', () => {
    for (const id of [
      { session, issuedMs: 1_790_000_000_123 },
      { session: null, issuedMs: 0 },
    ]) {
      const text = formatTokenId(id);
      expect(parseTokenId(text)).toEqual(id);
      expect(formatTokenId(id)).not.toBe(text);
    }
  });

  it.each([
    [undefined],
    [1],
    [''],
    [session],
    [`${session}.abc`],
    [`${session}.abc.`],
    [`${session}.ABC.x`],
    [`${session}.abcdefghijkl.x`],
    [`${session.slice(1)}.abc.x`],
    [`x${session}.abc.x`],
    [`${session}.abc.x y`],
    ['--.abc.x'],
    ['.abc.x'],
  ])('is not read from %j', (text) => {
    expect(parseTokenId(text)).toBeNull();
  });
});

describe('what documents hold at the paths of rules', () => {
  const id = new ObjectId();

  it('is what conditions ask for as one value', () => {
    const conditions = [
      { a: 1 },
      { b: { $eq: 'x' } },
      { c: { $in: ['x'] } },
      { d: null },
      { _id: { $eq: id } },
      { e: [1] },
    ];
    expect([...boundValuesOf(conditions, ['a', 'b', 'c', 'd', 'id', 'e', 'f', 'toString'])]).toEqual([
      ['a', 1],
      ['b', 'x'],
      ['d', null],
      ['id', id.toHexString()],
    ]);
  });

  it('is what a document holds, null where it holds nothing that can be compared', () => {
    const document = { _id: id, a: { b: true }, list: [1], ref: id };
    const paths = ['id', 'a.b', 'a.c', 'a', 'list', 'ref', 'a.b.c', 'toString'];
    expect([...boundValuesOfDocument(document, paths)]).toEqual([
      ['id', id.toHexString()],
      ['a.b', true],
      ['a.c', null],
      ['a', null],
      ['list', null],
      ['ref', id.toHexString()],
      ['a.b.c', null],
      ['toString', null],
    ]);
    expect(preconditionsOf(document, ['id', 'a.b', 'a.c'])).toEqual([
      { _id: { $eq: id } },
      { 'a.b': { $eq: true } },
      { 'a.c': { $eq: null } },
    ]);
  });

  it('is something that no document holds, for one that is not there', () => {
    const held = placeholderDocument(['id', 'a.b', 'a.c', 'owner']);
    expect(held).toEqual({
      _id: expect.any(ObjectId) as ObjectId,
      a: { b: expect.stringMatching(/^[0-9a-f]{24}$/) as string, c: expect.stringMatching(/^[0-9a-f]{24}$/) as string },
      owner: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
    });
    expect(placeholderDocument(['owner'])).not.toEqual(placeholderDocument(['owner']));
  });

  it('are all values on the way through lists', () => {
    const document = { a: [{ b: 1 }, { b: [2, 'x'] }, { c: 3 }, null, 4], ref: id, none: null, date: new Date() };
    expect(valuesAt(document, ['a', 'b'])).toEqual([1, 2, 'x']);
    expect(valuesAt(document, ['ref'])).toEqual([id.toHexString()]);
    for (const path of ['none', 'date', 'absent', 'toString']) expect(valuesAt(document, [path])).toEqual([]);
    expect(valuesAt(document, ['ref', 'b'])).toEqual([]);
  });
});
