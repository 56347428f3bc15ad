import { ApiError } from '../api-error.js';
import type { Connection } from '../connection.js';
import { isDone, lock, markDone, sleep } from '../platform.js';
import { isExpiring } from './expiry.js';
import type { KeptSession, Session } from './kept-session.js';

export interface TokenReply {
  accessToken: string;
  refreshToken?: string;
  user?: unknown;
}

/** The session is over, not only this request refused. */
const ENDED = /^(REFRESH|TOKEN)_/;

/** Between looks for what another tab has stored, and how many before this one acts itself. */
const LOOK_MS = 10;
const MAX_LOOKS = 100;

interface Renewal {
  /** False after the session has ended. */
  renew: (stale: string | undefined) => Promise<boolean>;
  /** A valid access token; null when no user is signed in. */
  token: () => Promise<string | null>;
}

/** Gets new tokens, one at a time in all tabs: those that waited find what the first one got. */
export function openRenewal(
  connection: Connection,
  { loading, read, write, end }: KeptSession,
  presented: (session: Session) => Record<string, string>,
): Renewal {
  const place = connection.name;

  /** Waits for the tokens of another tab: they come to this one a moment after they were stored there. */
  const storedByOther = async (stale: string): Promise<void> => {
    for (let looks = 0; looks < MAX_LOOKS && read()?.accessToken === stale; looks++) await sleep(LOOK_MS);
  };

  const renew: Renewal['renew'] = (stale) =>
    lock(place, async () => {
      await loading;
      const renewed = `${place}:${stale?.slice(-32)}`;
      if (stale !== undefined && (await isDone(renewed))) await storedByOther(stale);
      const session = read();
      if (!session || (stale !== undefined && session.accessToken !== stale)) return session !== null;
      try {
        // The service gives the same successor twice within seconds: repeating it does no harm.
        const reply = await connection.send<TokenReply>({
          method: 'POST',
          path: '/userAuth/refresh-token',
          headers: presented(session),
          isAnonymous: true,
        });
        const { accessToken, refreshToken } = reply;
        // A sign-out or sign-in in the meantime must not be undone.
        if (read()?.accessToken !== session.accessToken) return read() !== null;
        await write({ ...session, accessToken, ...(refreshToken !== undefined && { refreshToken }) });
        if (stale !== undefined) await markDone(renewed);
        return true;
      } catch (error) {
        if (!(error instanceof ApiError) || !ENDED.test(error.code)) throw error;
        await end('ended');
        return false;
      }
    });

  return {
    renew,
    async token() {
      await loading;
      const session = read();
      if (session && isExpiring(session)) await renew(session.accessToken);
      return read()?.accessToken ?? null;
    },
  };
}
