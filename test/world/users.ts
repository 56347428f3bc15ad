// End users, and the tokens that they carry.

export { changeUser } from '../../src/features/users/accounts/change-user.js';
export { deleteUser } from '../../src/features/users/accounts/delete-user.js';
export { updateProfile } from '../../src/features/users/profile/update-profile.js';
export { acceptInvite } from '../../src/features/users/invites/invite.js';
export { signAccessToken } from '../../src/features/access/sign-access-token.js';
export { signUp } from '../../src/features/users/sign-up.js';
export { requireUser, findUser } from '../../src/features/users/user-store.js';
export { disableUser, enableUser } from '../../src/features/users/accounts/change-user.js';
export { setPassword } from '../../src/features/users/accounts/password.js';
export { totpCode } from '../../src/features/users/factors/totp.js';
export { cutOffTokens, CUTOFFS } from '../../src/features/access/token-cutoff.js';
export { countMailTo } from '../../src/features/users/codes/mail-allowance.js';
export { MAX_USER_BYTES } from '../../src/features/users/accounts/insert-user.js';
export { VERIFIED_TOKENS } from '../../src/features/access/read-bearer.js';
export { ONE_TIME_CODES, findPendingEmail } from '../../src/features/users/codes/one-time-code.js';
