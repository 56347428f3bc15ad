import type { App } from '../../../app.js';
import { conflict, missing, type AppError } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { endSessions, sessionsEnd } from '../sessions/end-sessions.js';
import type { User } from '../user.js';
import { accountChanged, requireUser } from '../user-store.js';
import { changeUser } from './change-user.js';
import { markOf, findLinkRecords, isLinkOf, removeDeadLinks, type LinkedIdentity } from './linked-identity.js';
import { findPasskeyRecords, isPasskeyOf, removeDeadPasskeys, type Passkey } from './passkey.js';

const MAX_RACES = 5;

/**
 * Takes every identity of a provider off the account, and ends all sessions but `keepSession`, by one write of the
 * account. 404 IDENTITY_NOT_FOUND; 409 LAST_SIGN_IN_METHOD when neither a password nor another identity or passkey
 * would be left, however many are taken off at once.
 */
export function unlinkIdentity(
  app: App,
  project: Project,
  user: Pick<User, '_id'>,
  provider: string,
  keepSession: string | null,
): Promise<void> {
  const isGoing = (way: SignInMethod): boolean => 'provider' in way && way.provider === provider;
  const unknown = missing('IDENTITY_NOT_FOUND', 'The account has no identity of this provider');
  return takeOff(app, project, user, { isGoing, unknown, keepSession });
}

/** The same for one passkey, by its id: 404 PASSKEY_NOT_FOUND. */
export function removePasskey(
  app: App,
  project: Project,
  user: Pick<User, '_id'>,
  id: string,
  keepSession: string | null,
): Promise<void> {
  const isGoing = (way: SignInMethod): boolean => 'credentialId' in way && way._id === id;
  const unknown = missing('PASSKEY_NOT_FOUND', 'The account has no such passkey');
  return takeOff(app, project, user, { isGoing, unknown, keepSession });
}

type SignInMethod = LinkedIdentity | Passkey;

interface Going {
  isGoing: (way: SignInMethod) => boolean;
  unknown: AppError;
  keepSession: string | null;
}

async function takeOff(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  { isGoing, unknown, keepSession }: Going,
): Promise<void> {
  for (let race = 0; race < MAX_RACES; race++) {
    const user = await requireUser(app, project._id, _id.toHexString());
    const [links, passkeys] = [await findLinkRecords(app, project, user), await findPasskeyRecords(app, project, user)];
    const open = [
      ...links.filter((link) => isLinkOf(link, user)),
      ...passkeys.filter((passkey) => isPasskeyOf(passkey, user)),
    ];
    const going = open.filter(isGoing);
    if (going.length === 0) throw unknown;
    const { passwordHash, ownership, factorStamp, unlinked } = user[HIDDEN_FIELD];
    if (passwordHash === null && going.length === open.length) {
      throw conflict(
        'LAST_SIGN_IN_METHOD',
        'This is the account’s only sign-in method. Set a password (request-password-reset) or add another method first',
      );
    }
    const marks = [...links, ...passkeys].map(markOf);
    const changed = await changeUser(
      app,
      project,
      {
        _id,
        [`${HIDDEN_FIELD}.passwordHash`]: passwordHash,
        [`${HIDDEN_FIELD}.ownership`]: ownership ?? null,
        [`${HIDDEN_FIELD}.factorStamp`]: factorStamp ?? null,
        [`${HIDDEN_FIELD}.unlinked`]: unlinked ?? null,
      },
      {
        // Marks matter only while their record is there.
        [`${HIDDEN_FIELD}.unlinked`]: [
          ...(unlinked ?? []).filter((mark) => marks.includes(mark)),
          ...going.map(markOf),
        ],
        ...sessionsEnd(app, user, keepSession),
      },
    );
    if (!changed) continue;
    await endSessions(app, project, changed, 'account changed');
    await removeDeadLinks(app, project, changed);
    await removeDeadPasskeys(app, project, changed);
    return;
  }
  throw accountChanged();
}
