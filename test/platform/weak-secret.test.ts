import { describe, expect, it } from 'vitest';
import { findWeakness } from '../../cli/serve/run-service.js';

describe('a secret that can be guessed', () => {
  it.each([
    ['changeme', 'examples'],
    ['change-me-please', 'examples'],
    ['Your-Secret-Key-Here-123', 'examples'],
    ['super_secret_key', 'examples'],
    ['s3cr3tXy', 'shorter'],
    ['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'repeats'],
    ['abcabcabcabcabcabcabcabcabcabc', 'repeats'],
  ])('%s', (secret, why) => {
    expect(findWeakness(secret, 16)).toContain(why);
  });

  it.each(['q8Zk1vYfC0c9hVJp6Yw3mJ0hX2nJtF5rQ4uT7bW1xKs=', 'correct horse battery staple', 'admin-token-for-tests'])(
    'is not %s',
    (secret) => {
      expect(findWeakness(secret, 16)).toBeNull();
    },
  );
});
