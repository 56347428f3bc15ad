import type { Account } from './account.js';

const NO_CRYPTO =
  'Social sign-in needs Web Crypto (crypto.getRandomValues and crypto.subtle), which this platform lacks: load a polyfill before the client';

/** Sign-in at another service, and the way back. */
export interface Social<User> {
  socialUrl(provider: string, redirect?: string): Promise<string>;
  finishSocial(rtCode: string): Promise<User>;
}

/** What proves that both steps were taken in the same place is stored between them. */
export function openSocial<User>(account: Account<User>): Social<User> {
  const { connection, store, enter, pathPart, refuse, tools } = account;
  const { randomKey, platform } = tools;
  const verifierPlace = `${connection.name}:verifier`;
  return {
    async socialUrl(provider, redirect) {
      const { subtle } = platform.crypto ?? {};
      if (!subtle) throw refuse(NO_CRYPTO, { status: 0, code: 'NO_CRYPTO' });
      const verifier = randomKey() + randomKey();
      await store.set(verifierPlace, verifier);
      const digest = await subtle.digest('SHA-256', new TextEncoder().encode(verifier));
      const challenge = btoa(String.fromCharCode(...new Uint8Array(digest)));
      const parameters = {
        key: connection.key,
        code_challenge: challenge.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, ''),
        ...(redirect !== undefined && { redirect }),
      };
      const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
      const path = `/api/userAuth/social/${pathPart(provider, 'INVALID_NAME')}/start`;
      return `${connection.url}${path}?${query.join('&')}`;
    },
    async finishSocial(rtCode) {
      const verifier = await store.get(verifierPlace);
      await store.set(verifierPlace, null);
      return enter('social/exchange', { rtCode, ...(verifier !== null && { code_verifier: verifier }) });
    },
  };
}
