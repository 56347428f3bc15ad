/** Names a linked identity or a passkey, and no later one of the same kind: what the account notes when it goes. */
export function markOf({ _id, createdAt }: { _id: string; createdAt: Date }): string {
  return `${_id}@${createdAt.getTime()}`;
}
