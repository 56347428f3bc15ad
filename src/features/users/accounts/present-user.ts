import { HIDDEN_FIELD, type Field } from '../../collections/fields/field.js';
import { ROLES } from '../../collections/users-collection.js';
import { presentDocument, type PresentedDocument } from '../../documents/reply/present-document.js';
import { isAnonymous, type User } from '../user.js';

/**
 * A user as its owner and the operator see it: schema fields, `emailVerified`, `createdAt`, `updatedAt`, the roles of
 * who was ever given some; never the password or the service's notes.
 */
export function presentUser(user: User): PresentedDocument {
  const { password: _password, isDeleted: _isDeleted, deletedAt: _deletedAt, ...rest } = presentDocument(user);
  const { roles } = user[HIDDEN_FIELD];
  return {
    ...rest,
    ...(isAnonymous(user) && { isAnonymous: true }),
    ...(roles !== undefined && !Object.hasOwn(rest, ROLES) && { [ROLES]: roles }),
  };
}

/** The public view of a user: the id and the fields that the schema marks public. */
export function presentPublicUser(user: User, fields: readonly Field[]): PresentedDocument {
  const shown: PresentedDocument = { _id: user._id.toHexString() };
  for (const { name, public: isPublic } of fields) {
    if (isPublic && name !== 'password' && Object.hasOwn(user, name)) shown[name] = user[name];
  }
  return shown;
}
