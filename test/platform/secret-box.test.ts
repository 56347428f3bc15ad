import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openSecretBox } from '../../src/platform/secrets/secret-box.js';

const OLD = 'the first master key of this test';
const NEW = 'the second master key of this test';
const keyIdOf = (encrypted: string): string => encrypted.split('.')[1]!;

describe('an encrypted secret', () => {
  it('opens to what it was, for any text', () => {
    const box = openSecretBox(OLD);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, context) => {
        const plain = Buffer.from(text).toString();
        expect(box.decrypt(box.encrypt(plain, context), context)).toBe(plain);
      }),
      { seed: 7, numRuns: 200 },
    );
  });

  it('names the key that encrypted it by an id that tells nothing of the key', () => {
    const encrypted = openSecretBox(OLD).encrypt('text', 'place');
    expect(encrypted).toMatch(/^v1\.[0-9a-f]{8}\.[\w-]+$/);
    expect(keyIdOf(openSecretBox(OLD).encrypt('other', 'place'))).toBe(keyIdOf(encrypted));
    expect(keyIdOf(openSecretBox(NEW).encrypt('text', 'place'))).not.toBe(keyIdOf(encrypted));
  });

  it('is another one each time', () => {
    const box = openSecretBox(OLD);
    expect(box.encrypt('text', 'place')).not.toBe(box.encrypt('text', 'place'));
  });

  it('of an older key opens as long as that is among the keys, and is known to be old', () => {
    const encrypted = openSecretBox(OLD).encrypt('text', 'place');
    const both = openSecretBox(`${NEW}, ${OLD}`);
    expect(both.decrypt(encrypted, 'place')).toBe('text');
    expect(both.isOld(encrypted)).toBe(true);
    expect(both.isOld(both.encrypt('text', 'place'))).toBe(false);
    expect(() => openSecretBox(NEW).decrypt(encrypted, 'place')).toThrow(/master key [0-9a-f]{8} .*not among/);
  });

  it('cannot be moved to another place, shortened, or changed by a bit', () => {
    const box = openSecretBox(OLD);
    const encrypted = box.encrypt('a text of some length', 'project 1');
    expect(() => box.decrypt(encrypted, 'project 2')).toThrow();
    const [version, id, body] = encrypted.split('.') as [string, string, string];
    const bytes = Buffer.from(body, 'base64url');
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      expect(() => box.decrypt(`${version}.${id}.${changed.toString('base64url')}`, 'project 1')).toThrow();
      const cut = bytes.subarray(0, at).toString('base64url');
      expect(() => box.decrypt(`${version}.${id}.${cut}`, 'project 1')).toThrow();
    }
    expect(() => box.decrypt(`v2.${id}.${body}`, 'project 1')).toThrow('not an encrypted secret');
  });

  it('of a key that came while the process runs opens at once', () => {
    let keys = OLD;
    const running = openSecretBox(() => keys);
    const encrypted = openSecretBox(NEW).encrypt('text', 'place');
    expect(() => running.decrypt(encrypted, 'place')).toThrow(/not among/);
    keys = `${NEW},${OLD}`;
    expect(running.decrypt(encrypted, 'place')).toBe('text');
  });

  it('needs a key', () => {
    expect(() => openSecretBox(' , ')).toThrow('at least one master key');
  });
});

describe('a keyed hash', () => {
  it('differs by purpose and by key, and can be checked under each key', () => {
    const both = openSecretBox(`${NEW},${OLD}`);
    expect(both.mac('cursors', 'text')).not.toBe(both.mac('codes', 'text'));
    expect(both.macs('cursors', 'text')).toEqual([
      openSecretBox(NEW).mac('cursors', 'text'),
      openSecretBox(OLD).mac('cursors', 'text'),
    ]);
  });
});
