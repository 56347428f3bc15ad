import { complete, think, type SoakCaller, type SoakReply } from './caller.js';
import type { Random } from '../random.js';

export interface UserBook {
  email: string;
  /** null when the sign-up was not answered. */
  id: string | null;
  /** More than one after a change of the password without an answer. */
  passwords: string[];
  /**
   * The refresh token that was given last; null when a request with it was not answered, or when nobody is signed in.
   */
  refreshToken: string | null;
}

export const FIRST_PASSWORD = 'the first password';

/** Signs up, signs in, refreshes and changes passwords, as several end users in turn. */
export async function runUserClient(
  caller: SoakCaller,
  name: string,
  random: Random,
  books: UserBook[],
): Promise<void> {
  const mine: UserBook[] = [];
  for (let made = 0; !caller.over();) {
    await think(random, 60);
    if (mine.length < 4 || random.chance(0.1)) {
      const book = await signUp(caller, `${name}.${made++}@example.test`);
      books.push(book);
      if (book.id) mine.push(book);
      continue;
    }
    await act(caller, random.pick(mine), random);
  }
}

const auth = (path: string): string => `/api/userAuth/${path}`;

async function signUp(caller: SoakCaller, email: string): Promise<UserBook> {
  const body = { email, password: FIRST_PASSWORD };
  const reply = await caller.send('signup', 'POST', auth('signup'), { body, publishable: true, allowed: [201] });
  const book: UserBook = { email, id: null, passwords: [FIRST_PASSWORD], refreshToken: null };
  if (!complete(reply, 201)) return book;
  const { _id } = reply.body.user as { _id: string };
  return { ...book, id: _id, refreshToken: reply.headers.get('x-refresh-token') };
}

async function act(caller: SoakCaller, book: UserBook, random: Random): Promise<void> {
  if (book.refreshToken && random.chance(0.5)) return refresh(caller, book);
  // After an unanswered change of the password one of the two works: both are tried at the end.
  if (book.passwords.length > 1) return;
  const accessToken = await logIn(caller, book);
  if (accessToken && random.chance(0.3)) await changePassword(caller, book, accessToken);
}

async function refresh(caller: SoakCaller, book: UserBook): Promise<void> {
  const token = book.refreshToken!;
  // An unanswered refresh may have spent the token; whoever comes back too late has to sign in again.
  book.refreshToken = null;
  const options = { headers: { 'x-refresh-token': token }, publishable: true, allowed: [200] };
  const reply = await caller.send('refresh', 'POST', auth('refresh-token'), options);
  if (complete(reply, 200)) book.refreshToken = reply.headers.get('x-refresh-token');
}

async function logIn(caller: SoakCaller, book: UserBook): Promise<string | null> {
  const body = { email: book.email, password: book.passwords[0] };
  const reply = await caller.send('login', 'POST', auth('login'), { body, publishable: true, allowed: [200] });
  if (!complete(reply, 200)) return null;
  book.refreshToken = reply.headers.get('x-refresh-token');
  return reply.body.accessToken as string;
}

async function changePassword(caller: SoakCaller, book: UserBook, accessToken: string): Promise<void> {
  const [currentPassword] = book.passwords as [string];
  const newPassword = `password ${Number(/\d+$/.exec(currentPassword)?.[0] ?? 0) + 1}`;
  // Other sessions end with the change; what becomes of this one is not looked at.
  book.refreshToken = null;
  const reply = await caller.send('password', 'POST', auth('change-password'), {
    body: { currentPassword, newPassword },
    headers: { authorization: `Bearer ${accessToken}` },
    publishable: true,
    allowed: [200],
  });
  book.passwords = complete(reply, 200) ? [newPassword] : [currentPassword, newPassword];
}

const MAX_CHECKED = 150;

/** Signs every known user in (a sample of many) and uses the last refresh token of each; tells what does not work. */
export async function findLostUsers(caller: SoakCaller, books: readonly UserBook[], random: Random): Promise<string[]> {
  const lost: string[] = [];
  const known = books.filter(({ id }) => id !== null);
  const share = Math.min(1, MAX_CHECKED / Math.max(1, known.length));
  for (const book of known) {
    if (!random.chance(share)) continue;
    if (book.refreshToken) {
      const options = { headers: { 'x-refresh-token': book.refreshToken }, publishable: true, allowed: [200, 401] };
      const reply = await caller.send('last refresh', 'POST', auth('refresh-token'), options);
      if (!complete(reply, 200)) lost.push(`session of ${book.email}: ${(reply as SoakReply)?.status}`);
    }
    const working: string[] = [];
    for (const password of book.passwords) {
      const options = { body: { email: book.email, password }, publishable: true, allowed: [200, 401] };
      if (complete(await caller.send('last login', 'POST', auth('login'), options), 200)) working.push(password);
    }
    if (working.length !== 1)
      lost.push(`account ${book.email}: ${working.length} of ${book.passwords.length} passwords work`);
  }
  return lost;
}
