import { platform, tellListener, type SessionStorage } from '../platform.js';

/** A session as it is stored. */
export interface Session {
  accessToken: string;
  /** None in cookie mode. */
  refreshToken?: string;
  user: unknown;
}

export interface KeptSession {
  read: () => Session | null;
  write: (session: Session) => void;
  /** Somebody has signed in or, with null, out: listeners hear of it. */
  change: (session: Session | null) => void;
  /** Keeps what the service says of the user; unless another one has signed in since. */
  keep: <T>(user: T) => T;
  onChange: (listener: (user: never) => void) => () => void;
}

const idOf = (user: unknown): unknown => (user as { _id?: unknown } | undefined)?._id;

export function openKeptSession(place: string, storage: SessionStorage): KeptSession {
  const listeners = new Set<(user: never) => void>();

  const read = (): Session | null => {
    try {
      const session = JSON.parse(storage.getItem(place) ?? 'null') as Session | null;
      return typeof session?.accessToken === 'string' ? session : null;
    } catch {
      // Not written here, or cut off: nobody is signed in.
      return null;
    }
  };
  const tell = (): void => listeners.forEach((listener) => tellListener(listener, (read()?.user ?? null) as never));
  const write = (session: Session): void => storage.setItem(place, JSON.stringify(session));
  const onStorage = ({ key }: { key?: string | null }): void => {
    if (key === place) tell();
  };

  return {
    read,
    write,
    change(session) {
      if (session) write(session);
      else storage.removeItem(place);
      tell();
    },
    keep(user) {
      const session = read();
      if (session && idOf(session.user) === idOf(user)) write({ ...session, user });
      return user;
    },
    onChange(listener) {
      if (listeners.size === 0) platform.addEventListener?.('storage', onStorage);
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) platform.removeEventListener?.('storage', onStorage);
      };
    },
  };
}
