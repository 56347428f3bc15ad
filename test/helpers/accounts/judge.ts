import type { Account } from './account-world.js';
import type { Deed, Opened, Records } from './person.js';

export type Accounts = ReadonlyMap<string, Account>;

/** What became of the accounts in a round, and who did what in it. */
export interface Round {
  before: Accounts;
  after: Accounts;
  deeds: readonly Deed[];
  opened: readonly Opened[];
  /** Of the project, which needs no proof. */
  byProject: ReadonlySet<string>;
}

type OwnerOf = (address: string | null) => string | null;

/** The faults of a round against the properties of accounts.md 7. */
export function judge(round: Round, ownerOf: OwnerOf, { ends }: Records): string[] {
  return [
    ...round.opened.flatMap((each) => judgeOpened(round, each, ownerOf, ends)),
    ...[...round.after.values()].flatMap((account) => judgeProof(round, account, ownerOf)),
    ...[...round.before.values()].flatMap((account) => judgeLevel(round, account)),
    ...[...round.before.values()].flatMap((account) => judgeGuest(round, account)),
  ];
}

function judgeOpened({ before, after }: Round, each: Opened, ownerOf: OwnerOf, ends: Map<string, number>): string[] {
  const { person, user, by } = each;
  const [was, is] = [before.get(user), after.get(user)];
  // Made in this round, or deleted in it.
  if (!was || !is) return [];
  const faults: string[] = [];
  const owner = was.isProven && is.isProven && was.email === is.email ? ownerOf(was.email) : null;
  const isSame = was.user._bsvc.ownership === is.user._bsvc.ownership;
  if (owner !== null && owner !== person && isSame) faults.push(`1: ${person} opens by ${by} what ${owner} proved`);
  if (was.isDisabled && is.isDisabled) faults.push(`6: ${person} opens by ${by} a disabled account`);
  const isStale = each.ends !== null && each.ends < (ends.get(user) ?? 0);
  if (isStale) faults.push(`6: ${person} opens by ${by} from before an end of the sessions of ${user}`);
  if (each.passkey !== undefined && !was.passkeys.includes(each.passkey) && !is.passkeys.includes(each.passkey)) {
    faults.push(`6: ${person} opens ${user} by a passkey that is gone`);
  }
  return faults;
}

/** No address is proven but by who has its mailbox. */
function judgeProof({ before, deeds, byProject }: Round, is: Account, ownerOf: OwnerOf): string[] {
  const was = before.get(is.id);
  if (!is.isProven || (was?.isProven && was.email === is.email) || byProject.has(is.id)) return [];
  const owner = ownerOf(is.email);
  return deeds.some(({ person }) => person === owner) ? [] : [`1, 7: ${is.email} of ${is.id} is proven by nobody`];
}

/** Ways in, as far as proofs of the highest level are wanted to change them. */
function changedWays(was: Account, is: Account | undefined): string[] {
  if (!is) return ['account'];
  const [old, now] = [was.user._bsvc, is.user._bsvc];
  const grown = (a: string[], b: string[]): boolean => b.some((each) => !a.includes(each));
  const changes = {
    email: was.email !== is.email && old.pendingEmail?.address !== is.email,
    'pending email': Boolean(now.pendingEmail) && old.pendingEmail?.address !== now.pendingEmail?.address,
    totp: (old.totp?.since.getTime() ?? 0) !== (now.totp?.since.getTime() ?? 0),
    'recovery codes': grown(old.recovery ?? [], now.recovery ?? []),
    passkeys: grown(was.passkeys, is.passkeys) || grown(is.passkeys, was.passkeys),
    identities: grown(is.identities, was.identities),
    'linked identities': grown(was.identities, is.identities),
    password: old.passwordHash !== now.passwordHash,
  };
  return Object.entries(changes).flatMap(([name, isChanged]) => (isChanged ? [name] : []));
}

/** What a proof of the mailbox changes though the account has a factor: none of it signs in without the factor. */
const BY_MAILBOX: Readonly<Record<string, readonly string[]>> = {
  reset: ['password'],
  social: ['linked identities'],
};

function judgeLevel({ after, deeds, byProject }: Round, was: Account): string[] {
  if (!was.hasFactor || byProject.has(was.id)) return [];
  const is = after.get(was.id);
  const passed = is && was.user._bsvc.ownership !== is.user._bsvc.ownership;
  // To the mailbox that a proof of the level had named.
  const mayPass = was.user._bsvc.pendingEmail?.address === is?.email;
  if (passed && mayPass) return [];
  const isAllowed = (change: string): boolean =>
    deeds.some(
      ({ what, user, isStrong }) => (user === was.id && isStrong) || (BY_MAILBOX[what]?.includes(change) ?? false),
    );
  return changedWays(was, is)
    .filter((change) => !isAllowed(change))
    .map((change) => `2: ${change} of ${was.id} changed by ${deeds.map(({ what }) => what).join(', ')}`);
}

/** A guest keeps the id, whatever is added: gone is only who was deleted. */
function judgeGuest({ after, deeds, byProject }: Round, was: Account): string[] {
  if (!was.user._bsvc.anonymous || after.has(was.id) || byProject.has(was.id)) return [];
  const isDeleted = deeds.some(({ what, user }) => what === 'delete' && user === was.id);
  return isDeleted ? [] : [`7: the guest ${was.id} is gone by ${deeds.map(({ what }) => what).join(', ')}`];
}

/** True if a round ended the sessions of an account, as far as its record shows. */
export function hasEnded(was: Account, is: Account | undefined): boolean {
  if (!is) return true;
  // What a guest adds ends nothing: the session is all there was.
  if (was.user._bsvc.anonymous) return false;
  const [old, now] = [was.user._bsvc, is.user._bsvc];
  return (
    old.passwordHash !== now.passwordHash ||
    (!was.isDisabled && is.isDisabled) ||
    was.email !== is.email ||
    (!was.isProven && is.isProven) ||
    was.passkeys.some((each) => !is.passkeys.includes(each)) ||
    was.identities.some((each) => !is.identities.includes(each))
  );
}
