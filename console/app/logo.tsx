/** The mark of the service: a compass needle. */
export function Logo({ size = 22 }: { readonly size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" className="shrink-0">
      <rect width="24" height="24" rx="7" className="fill-accent" />
      <path d="M12 4.5l4.6 14.2L12 15.6l-4.6 3.1z" fill="#fff" />
    </svg>
  );
}
