import type { Account } from './account.js';
import type { StepUpProof } from './factors.js';

/** An identity at a sign-in provider that opens the account. */
export interface Identity {
  provider: string;
  linkedAt: string;
}

/** Linking of an identity at a provider to the account of the user. */
export interface Linking {
  /**
   * The address to send the browser to; it comes back to `redirect`. Needs a proof of the last ten minutes, here or by
   * `stepUp`.
   */
  start(provider: string, options?: StepUpProof & { redirect?: string }): Promise<string>;
  /** Links by the `rtCode` that came back in the address of the page, for the same user. */
  finish(rtCode: string): Promise<Identity>;
}

/** Identities at sign-in providers that open the account; `link` adds one. */
export interface Identities {
  /** The oldest first. */
  list(): Promise<Identity[]>;
  /**
   * Removes the identities of a provider and ends all other sessions. Needs a proof of the last ten minutes, here or by
   * `stepUp`; 409 `LAST_SIGN_IN_METHOD` for the only sign-in method of the account.
   */
  unlink(provider: string, proof?: StepUpProof): Promise<void>;
}

export function openLinking({ connection, pathPart }: Pick<Account<unknown>, 'connection' | 'pathPart'>): Linking {
  const post = async <T>(path: string, body: object): Promise<T> =>
    (await connection.send<{ data: T }>({ method: 'POST', path: `/userAuth/social/${path}`, body, repeat: 'no' })).data;
  return {
    start: async (provider, options = {}) =>
      (await post<{ url: string }>(`${pathPart(provider, 'INVALID_NAME')}/link`, options)).url,
    finish: (rtCode) => post('link', { rtCode }),
  };
}

export function openIdentities({
  connection,
  pathPart,
}: Pick<Account<unknown>, 'connection' | 'pathPart'>): Identities {
  return {
    list: async () =>
      (await connection.send<{ data: { items: Identity[] } }>({ path: '/userAuth/identities' })).data.items,
    async unlink(provider, proof) {
      const path = `/userAuth/identities/${pathPart(provider, 'INVALID_NAME')}`;
      await connection.send({ method: 'DELETE', path, body: proof, repeat: 'no' });
    },
  };
}
