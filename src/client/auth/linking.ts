import type { Account } from './account.js';
import type { GivenProof } from './factors.js';

/** Linking of an identity at a provider to the account of the user. */
export interface Linking {
  /**
   * The address to send the browser to; it comes back to `redirect`. Needs a proof of the last ten minutes, here or by
   * `stepUp`.
   */
  start(provider: string, options?: GivenProof & { redirect?: string }): Promise<string>;
  /** Links by the `rtCode` that came back in the address of the page, for the same user. */
  finish(rtCode: string): Promise<{ provider: string; linkedAt: string }>;
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
