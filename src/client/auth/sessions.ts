import type { Account } from './account.js';
import type { StepUpProof } from './factors.js';

/** A session of the user, as the user sees it. */
export interface OwnSession {
  id: string;
  createdAt: string;
  usedAt: string;
  expiresAt: string;
  /** The network of its client. */
  place: string | null;
  userAgent: string | null;
  /** True for the session of this client. */
  current: boolean;
  /** How the user proved to be the user: `pwd`, `otp`, `social`, `totp`, `recovery`, `passkey`. */
  amr: string[];
}

/** Where the user is signed in. */
export interface Sessions {
  /** The one used last first. */
  list(): Promise<OwnSession[]>;
  /**
   * Ends the session of an id, `others` than this or `all`; resolves to how many. Any but the current one needs a proof
   * of the last ten minutes, here or by `stepUp`.
   */
  end(which: string, proof?: StepUpProof): Promise<number>;
}

export function openSessions<User>({ connection, pathPart }: Account<User>): Sessions {
  return {
    list: async () =>
      (await connection.send<{ data: { items: OwnSession[] } }>({ path: '/userAuth/sessions' })).data.items,
    async end(which, proof) {
      const path = `/userAuth/sessions/${pathPart(which, 'INVALID_NAME')}`;
      const { data } = await connection.send<{ data: { ended: number } }>({ method: 'DELETE', path, body: proof });
      return data.ended;
    },
  };
}
