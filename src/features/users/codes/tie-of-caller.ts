import type { App } from '../../../app.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { findObjectId } from '../../../platform/ids.js';
import { sessionOf, type Caller } from '../../access/caller.js';
import { isSessionOf, isSignedInFrom } from '../sessions/end-sessions.js';
import { sessionStore } from '../sessions/session.js';
import { findUser } from '../user-store.js';
import type { Tie } from './mail-allowance.js';

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
