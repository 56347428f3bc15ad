import type { Account } from './account.js';

/** What an invitation is for. */
export interface Invitation {
  email: string;
  roles: string[];
  expiresAt: string;
}

/** An invitation as the project sees it. */
export interface SentInvitation extends Invitation {
  id: string;
  createdAt: string;
}

/** Invitations by mail; the token stands in the address that the mail links to, behind `#invite=`. */
export interface Invites<User> {
  show(token: string): Promise<Invitation>;
  /** Accepts as the user who is signed in, whose confirmed address has to be the invited one. */
  accept(token: string): Promise<User>;
  /** With the secret key, as are the two below: `redirect` is one of the project’s addresses. */
  send(invitation: {
    email: string;
    redirect: string;
    roles?: string[];
    /** Inserted when the invitation is accepted; `=user.id` is replaced by the id of the user. */
    set?: { collection: string; document: object };
    inviterName?: string;
  }): Promise<SentInvitation>;
  list(): Promise<SentInvitation[]>;
  withdraw(id: string): Promise<void>;
}

export function openInvites<User>({ connection, keep, pathPart }: Account<User>): Invites<User> {
  const send = async <T>(method: 'GET' | 'POST' | 'DELETE', path = '', body?: unknown): Promise<T> =>
    (await connection.send<{ data: T }>({ method, path: `/userAuth/invites${path}`, body, repeat: 'no' })).data;
  const at = (id: string): string => `/${pathPart(id, 'INVALID_NAME')}`;
  return {
    show: (token) => send('POST', '/show', { token }),
    accept: async (token) => keep(await send<User>('POST', '/accept', { token })),
    send: (invitation) => send('POST', '', invitation),
    list: async () => (await send<{ items: SentInvitation[] }>('GET')).items,
    withdraw: async (id) => void (await send('DELETE', at(id))),
  };
}
