import { describe, expect, it } from 'vitest';
import {
  deriveSuccessor,
  findSuccessor,
  generateRefreshToken,
  hashRefreshToken,
  isGenuine,
} from '../../../src/features/users/sessions/refresh-token.js';
import { openSecretBox } from '../../../src/platform/secrets/secret-box.js';

const SESSION = '0b7c9f0e-6c1d-4a77-9a53-0d6a2c1b8e11';
const box = openSecretBox('first master key');
const rotated = openSecretBox('second master key,first master key');

describe('refresh tokens', () => {
  const token = generateRefreshToken(box, SESSION);

  it('have one successor, the same each time it is asked for', () => {
    const successor = deriveSuccessor(box, token);
    expect(deriveSuccessor(box, token)).toEqual(successor);
    expect(successor).not.toEqual(token);
    expect(successor.session).toBe(SESSION);
    expect(isGenuine(box, successor)).toBe(true);
    expect(deriveSuccessor(box, successor)).not.toEqual(token);
  });

  it('have a successor that nobody can work out without the master key', () => {
    expect(deriveSuccessor(openSecretBox('another key'), token)).not.toEqual(deriveSuccessor(box, token));
  });

  it('are told from invented ones, also after the master key was changed', () => {
    expect(isGenuine(box, token)).toBe(true);
    expect(isGenuine(rotated, token)).toBe(true);
    const digit = token.secret[63] === '0' ? '1' : '0';
    expect(isGenuine(box, { ...token, secret: token.secret.slice(0, 63) + digit })).toBe(false);
    expect(isGenuine(box, { ...token, session: SESSION.replace('0b', '0c') })).toBe(false);
    expect(isGenuine(openSecretBox('another key'), token)).toBe(false);
  });

  it('get the same successor again when the master key is changed in between', () => {
    const successor = deriveSuccessor(box, token);
    expect(findSuccessor(rotated, token, hashRefreshToken(successor))).toEqual(successor);
    expect(findSuccessor(openSecretBox('another key'), token, hashRefreshToken(successor))).toBeNull();
  });
});
