import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import { counterId, countEvent, takeBack, type Cap, type Counted } from '../counters.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { findObjectId } from '../../../platform/ids.js';
import { sessionOf, type Caller } from '../../access/caller.js';
import { isSessionOf, isSignedInFrom } from '../sessions/end-sessions.js';
import { sessionStore } from '../sessions/session.js';
import { findUser } from '../user-store.js';

const HOUR_MS = 60 * 60_000;
/** Mails of all kinds together that requests may cause to an address (accounts.md 9). */
export const MAX_MAILS_A_DAY = 10;
/** Of them within an hour, to an address that has not shown to be the caller's. */
export const MAX_MAILS_AN_HOUR = 3;
/** Between two mails that one account causes by asking for another address. */
const ACCOUNT_PAUSE_MS = 60_000;
const A_DAY: Cap = { max: MAX_MAILS_A_DAY, ms: DAY_MS };
const AN_HOUR: Cap = { max: MAX_MAILS_AN_HOUR, ms: HOUR_MS };

/**
 * What ties a caller to an address: a session of its account (`owner` once the address is proven, else `known`), a
 * network from which the account is signed in (`known`), or nothing. The last mails of an hour and of a day are not for
 * unknown callers, so that they cannot use up the mails of another person.
 */
export type Tie = 'owner' | 'known' | 'stranger';

const ALLOWANCES: Readonly<Record<Tie, readonly Cap[]>> = {
  owner: [A_DAY],
  known: [A_DAY, AN_HOUR],
  stranger: [
    { ...A_DAY, max: 7 },
    { ...AN_HOUR, max: 2 },
  ],
};

/** Counts a mail to an address; null, with nothing counted, when it may have no more now. */
export function countMailTo(
  app: App,
  projectId: ObjectId,
  address: string,
  tie: Tie = 'known',
): Promise<Counted | null> {
  return count(app, projectId, ['address', address], ALLOWANCES[tie]);
}

/** Counts a mail that an account causes to an address which is not its own; null when it may cause no more now. */
export function countMailOf(app: App, projectId: ObjectId, userId: ObjectId): Promise<Counted | null> {
  return count(app, projectId, ['account', userId.toHexString()], [A_DAY, { max: 1, ms: ACCOUNT_PAUSE_MS }]);
}

async function count(
  app: App,
  projectId: ObjectId,
  of: readonly [string, string],
  caps: readonly Cap[],
): Promise<Counted | null> {
  const counted = await countEvent(app, projectId, counterId(app, projectId, 'mails', ...of), caps);
  return 'waitMs' in counted ? null : counted;
}

/** Takes counted mails back that were not sent. */
export async function uncountMails(app: App, mails: readonly Counted[]): Promise<void> {
  for (const mail of mails) await takeBack(app, mail);
}

/** The sender of a request for or with a code: network and tie to the address, which is looked up where it counts. */
export interface Asker {
  network: string;
  findTie(): Promise<Tie>;
}

/** The sender of a request, with regard to an address. */
export function askerOf(app: App, caller: Caller, { ip }: { ip: string }, email: string): Asker {
  const network = clientNetwork(ip);
  return { network, findTie: () => findTie(app, caller, network, email) };
}

async function findTie(app: App, caller: Caller, network: string, email: string): Promise<Tie> {
  const { project, bearer } = caller;
  const id = 'userId' in bearer ? findObjectId(bearer.userId) : null;
  const user = id && (await findUser(app, project._id, id));
  const session = sessionOf(caller);
  if (user?.email === email && session !== null) {
    const found = await sessionStore(app).findOne({ _id: session, userId: user._id, revokedAt: null });
    if (found && isSessionOf(found, user)) return user.emailVerified ? 'owner' : 'known';
  }
  return (await isSignedInFrom(app, project._id, email, network)) ? 'known' : 'stranger';
}
