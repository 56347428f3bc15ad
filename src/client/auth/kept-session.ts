import { openListeners, type Store } from '../platform.js';

/** A session as it is stored. */
export interface Session {
  accessToken: string;
  /** None in cookie mode. */
  refreshToken?: string;
  user: unknown;
  /** When the access token came, by the clock of this device. */
  at?: number;
}

/** Why no user is signed in: signed out here or in another tab, or the service has ended the session. */
export type SignedOut = 'signed-out' | 'ended';

export interface KeptSession {
  /** What is stored is being read, of a storage that answers with promises. */
  loading: Promise<void> | undefined;
  read: () => Session | null;
  /** Resolves when it is stored. */
  write: (session: Session) => Promise<void>;
  /** The user has been signed out. */
  end: (reason: SignedOut) => Promise<void>;
  /** Keeps what the service says of the user; unless another one has signed in since. */
  keep: <T>(user: T) => T;
  onChange: (listener: (user: never, reason?: SignedOut) => void) => () => void;
}

const idOf = (user: unknown): unknown => (user as { _id?: unknown } | null | undefined)?._id;

/** Stored in place of a session that the service has ended: other tabs learn the reason by it. */
const ENDED = '"ended"';

export function openKeptSession(place: string, store: Store): KeptSession {
  let text: string | null = null;
  let session: Session | null = null;
  let told: unknown;

  /** Takes what is stored; the user stays the same object until it changes. */
  const see = (stored: string | null): void => {
    if (stored === text) return;
    text = stored;
    const user = session?.user;
    session = parse(stored);
    if (session && JSON.stringify(session.user) === JSON.stringify(user)) session.user = user;
  };
  const first = store.get(place);
  let isWritten = false;
  const loading =
    first instanceof Object
      ? first.then((stored) => {
          if (!isWritten) see(stored);
          tell();
        })
      : undefined;

  const read = (): Session | null => {
    if (!loading) see(store.get(place) as string | null);
    return session;
  };
  const userOf = (): unknown => read()?.user ?? null;
  const tell = (): void => {
    const user = userOf();
    if (user === told) return;
    told = user;
    if (user === null) listeners.tell(null as never, text === ENDED ? 'ended' : 'signed-out');
    else listeners.tell(user as never);
  };
  const listeners = openListeners<[user: never, reason?: SignedOut]>(
    () => (told = userOf()),
    ['storage'],
    ({ key }) => key === place && tell(),
  );
  const save = (next: string | null): Promise<void> => {
    isWritten = true;
    const saved = store.set(place, next);
    see(next);
    tell();
    return saved;
  };
  const write = (next: Session): Promise<void> => {
    const isSame = read()?.accessToken === next.accessToken;
    return save(JSON.stringify({ ...next, at: isSame ? next.at : Date.now() }));
  };

  return {
    loading,
    read,
    write,
    end: (reason) => save(reason === 'ended' ? ENDED : null),
    keep(user) {
      const session = read();
      if (session && idOf(session.user) === idOf(user)) void write({ ...session, user });
      return user;
    },
    onChange: listeners.add,
  };
}

function parse(text: string | null): Session | null {
  try {
    const session = JSON.parse(text ?? 'null') as Session | null;
    return typeof session?.accessToken === 'string' ? session : null;
  } catch {
    // Not written by this client, or cut off: no user is signed in.
    return null;
  }
}
