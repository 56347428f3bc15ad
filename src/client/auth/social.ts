import { ApiError } from '../api-error.js';
import { randomKey, type Connection } from '../connection.js';
import { platform, type SessionStorage } from '../platform.js';
import { pathPart } from '../query.js';

const NO_CRYPTO =
  'Social sign-in needs Web Crypto (crypto.getRandomValues and crypto.subtle), which this platform lacks: load a polyfill before the client';

interface Social {
  socialUrl(provider: string, redirect?: string): Promise<string>;
  finishSocial(rtCode: string): Promise<never>;
}

/** Sign-in at another service, and the way back; what proves that both were here is stored between. */
export function openSocial(
  connection: Connection,
  storage: SessionStorage,
  enter: (path: string, body: unknown) => Promise<never>,
): Social {
  const verifierPlace = `${connection.name}:verifier`;
  return {
    async socialUrl(provider, redirect) {
      const { subtle } = platform.crypto ?? {};
      if (!subtle) throw new ApiError(NO_CRYPTO, { status: 0, code: 'NO_CRYPTO' });
      const verifier = randomKey() + randomKey();
      storage.setItem(verifierPlace, verifier);
      const digest = await subtle.digest('SHA-256', new TextEncoder().encode(verifier));
      const challenge = btoa(String.fromCharCode(...new Uint8Array(digest)));
      const query = new URLSearchParams({
        key: connection.key,
        code_challenge: challenge.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, ''),
        ...(redirect !== undefined && { redirect }),
      });
      return `${connection.url}/api/userAuth/social/${pathPart(provider, 'INVALID_NAME')}/start?${query}`;
    },
    async finishSocial(rtCode) {
      const verifier = storage.getItem(verifierPlace);
      storage.removeItem(verifierPlace);
      return enter('social/exchange', { rtCode, ...(verifier !== null && { code_verifier: verifier }) });
    },
  };
}
